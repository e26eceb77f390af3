import { setTimeout as sleep } from 'node:timers/promises';
import { KEY, type RunningApp, user } from '../app-kit.ts';
import type { FakeUpstream } from '../fake-upstream.ts';
import { hexSize, openSocket } from '../ingress/raw-socket.ts';
import type { Random } from './random.ts';

/** What one and the same bytes may be answered with when two readers could understand them in two ways. */
const REFUSALS = [400, 411, 431, 501, 505];

interface Attempt {
  what: string;
  bytes: string;
  /** How many requests it honestly holds; 0: it must be refused, and no model hears of it. */
  honest: number;
  /** Stands in every message that it carries. */
  marker: string;
}

const bodyOf = (text: string): string => JSON.stringify({ messages: user(text) });
function head(lines: readonly string[], eol = '\r\n'): string {
  return ['POST /v1/chat/completions HTTP/1.1', 'Host: hermes', `Authorization: Bearer ${KEY}`, 'Content-Type: application/json', ...lines, '', ''].join(eol);
}
const chunk = (text: string, extension = ''): string => `${hexSize(text)}${extension}\r\n${text}\r\n`;
const LAST = '0\r\n\r\n';

/** Each takes a body and gives the bytes of a request that must be refused. */
const AMBIGUOUS: Readonly<Record<string, (body: string, inner: string, random: Random) => string>> = {
  'both framings': (body, inner, { pick, below }) => {
    const lines = [
      `Content-Length: ${pick([4, body.length, body.length + below(90)])}`,
      `${pick(['Transfer-Encoding', 'transfer-encoding', 'TRANSFER-ENCODING'])}: chunked`,
    ];
    return head(below(2) ? lines : lines.reverse()) + pick([chunk(body) + LAST, LAST + inner]);
  },
  'two lengths': (body, inner, { below }) =>
    head([`Content-Length: ${body.length}`, `content-length: ${body.length + 1 + below(inner.length)}`]) + body + inner,
  'a length that is no number': (body, inner, { pick }) =>
    head([
      `Content-Length: ${pick([`+${body.length}`, `-${body.length}`, `0x${body.length.toString(16)}`, `${body.length},5`, `${body.length} 5`, `${body.length}.0`, '', '1_0'])}`,
    ]) +
    body +
    inner,
  'a coding that is not chunked': (body, inner, { pick }) =>
    head([
      `Transfer-Encoding: ${pick(['xchunked', 'chunked, identity', 'identity', '"chunked"', 'chunked;q=1', '\fchunked', '\vchunked', 'chunked\u0000', 'gzip'])}`,
    ]) +
    chunk(body) +
    LAST +
    inner,
  'a space before the colon': (body, inner, { pick }) => head([`Transfer-Encoding${pick([' ', '\t', '  '])}: chunked`]) + chunk(body) + LAST + inner,
  'a folded header': (body, inner, { pick }) =>
    head([pick([`Transfer-Encoding:\r\n${pick([' ', '\t'])}chunked`, `Content-Length:\r\n ${body.length}`, `X-A: a\r\n\tb`])]) +
    pick([body, chunk(body) + LAST]) +
    inner,
  'bare line feeds in the head': (body, inner, { pick }) => {
    const text = head([`Content-Length: ${body.length}`]);
    return pick([text.replaceAll('\r\n', '\n'), text.replace('Host: hermes\r\n', 'Host: hermes\n')]) + body + inner;
  },
  'a bare carriage return': (body, inner) => head([`X-A: a\rTransfer-Encoding: chunked`, `Content-Length: ${body.length}`]) + body + inner,
  'a null byte': (body, inner, { pick }) => head([pick(['X-A: a\u0000b', 'X-\u0000A: b']), `Content-Length: ${body.length}`]) + body + inner,
  'a size that is none': (body, inner, { pick }) =>
    `${head(['Transfer-Encoding: chunked'])}${pick(['zz', '-1', '+5', `0x${hexSize(body)}`, 'fffffffffffffffff', '', `${hexSize(body)} x`])}\r\n${body}\r\n${LAST}${inner}`,
  'bare line feeds in chunks': (body, inner, { pick }) =>
    head(['Transfer-Encoding: chunked']) +
    pick([(chunk(body) + LAST).replaceAll('\r\n', '\n'), chunk(body).replace('\r\n', '\n') + LAST, `${hexSize(body)};a\n\r\n${body}\r\n${LAST}`]) +
    inner,
  'a chunk that is longer than its size': (body, inner, { below }) =>
    `${head(['Transfer-Encoding: chunked'])}${(1 + below(body.length - 2)).toString(16)}\r\n${body}\r\n${LAST}${inner}`,
  'two hosts, or none': (body, inner, { pick }) => {
    const text = head([`Content-Length: ${body.length}`]);
    return pick([text.replace('Host: hermes\r\n', ''), text.replace('\r\n', `\r\n${pick(['Host: other', 'host: hermes'])}\r\n`)]) + body + inner;
  },
  'another protocol': (body, inner, { pick }) =>
    head([`Content-Length: ${body.length}`]).replace('HTTP/1.1', pick(['HTTP/3.7', 'HTTP/1.11', 'HTTP/11', 'HTTQ/1.1'])) + body + inner,
};

/** Framed as it should be, however oddly: it must be understood, once. */
function toHonest(random: Random, marker: string): Attempt {
  const { below, pick } = random;
  const count = 1 + below(3);
  const one = (): string => {
    const body = bodyOf(marker);
    if (below(3) === 0) return head([`${pick(['Content-Length', 'content-length', 'CONTENT-LENGTH'])}:${pick(['', ' ', ' \t '])}${body.length}`]) + body;
    let rest = body;
    let text = '';
    while (rest !== '') {
      const size = 1 + below(rest.length);
      text += chunk(rest.slice(0, size), pick(['', '', ';a', ';a=b', ';a="b c"', ';a=b;c', `;${'x'.repeat(1 + below(200))}`]));
      rest = rest.slice(size);
    }
    return `${head([`${pick(['Transfer-Encoding', 'transfer-encoding'])}: ${pick(['chunked', 'Chunked'])}`])}${text}0${pick(['', ';last'])}\r\n${pick(['', 'X-Trailer: 1\r\n'])}\r\n`;
  };
  return { what: 'honest', bytes: Array.from({ length: count }, one).join(pick(['', '\r\n'])), honest: count, marker };
}

function toAttempt(random: Random, number: number): Attempt {
  const marker = `mark-${number}-`;
  if (random.below(4) === 0) return toHonest(random, marker);
  const what = random.pick(Object.keys(AMBIGUOUS));
  const body = bodyOf(`${marker}outer`);
  const hidden = bodyOf(`${marker}hidden`);
  const bytes = AMBIGUOUS[what]?.(body, head([`Content-Length: ${hidden.length}`]) + hidden, random) ?? '';
  return { what, bytes, honest: 0, marker };
}

/** So many attempts to have one message understood as two, or two as one, among honest ones; `wide` at a time. */
export async function smuggleRequests(app: RunningApp, upstream: FakeUpstream, count: number, random: Random, wide = 16): Promise<string[]> {
  const wrong: string[] = [];
  const attempts: (Attempt & { statuses: number[] })[] = [];
  const one = async (): Promise<void> => {
    const attempt = { ...toAttempt(random, attempts.length), statuses: [] as number[] };
    attempts.push(attempt);
    const raw = await openSocket(app.app.port);
    raw.send(Buffer.from(attempt.bytes, 'latin1'));
    // What is refused loses its connection.
    await raw.until(() => attempt.honest > 0 && raw.statuses().length >= attempt.honest, 5000).catch(() => wrong.push(`${attempt.what}: still open`));
    raw.socket.destroy();
    attempt.statuses = raw.statuses();
  };
  await Promise.all(
    Array.from({ length: wide }, async () => {
      while (attempts.length < count) await one();
    }),
  );
  // Nothing is on its way any more.
  await sleep(200);
  const heard = new Map<string, number>();
  for (const { raw } of upstream.calls) {
    const marker = /mark-\d+-/.exec(raw)?.[0] ?? '';
    heard.set(marker, (heard.get(marker) ?? 0) + 1);
  }
  for (const { what, bytes, honest, marker, statuses } of attempts) {
    const tell = (problem: string): void => void wrong.push(`${what}: ${problem}; statuses ${statuses}; ${JSON.stringify(bytes).slice(0, 600)}`);
    if ((heard.get(marker) ?? 0) !== honest) tell(`a model heard ${heard.get(marker)} of ${honest}`);
    if (honest > 0 && (statuses.length !== honest || statuses.some((status) => status !== 200))) tell(`${honest} were to be answered`);
    if (honest === 0 && (statuses.length > 1 || statuses.some((status) => !REFUSALS.includes(status)))) tell('it was to be refused once');
  }
  return wrong;
}
