import { type Reply, type RunningApp, user } from '../app-kit.ts';
import { DONE, type FakeUpstream, toEventText } from '../fake-upstream.ts';
import type { Random } from './random.ts';

const GOOD = `${[{ role: 'assistant' as const, content: '' }, { content: '你好' }, { content: ' wörld 🙂' }, 'stop'].map(toEventText).join('')}${DONE}`;
const PIECES = [
  'data: ',
  'data:',
  '\n\n',
  '\r\n\r\n',
  ': comment\n\n',
  'event: error\n',
  'data: {}\n\n',
  'data: null\n\n',
  'data: [DONE]\n\n',
  'data: {"choices":[]}\n\n',
  'data: {"choices":[{}]}\n\n',
  '\u0000',
  'id: 7\n',
  'retry: 1\n',
  '{"error":{"message":"x"}}',
  'data: {"error":{"message":"boom"}}\n\n',
];

/** A good stream with bytes lost, doubled, changed or put in. */
function mutate({ below, pick }: Random): Buffer {
  let bytes = Buffer.from(GOOD);
  for (let times = 1 + below(4); times > 0; times--) {
    const at = below(bytes.length + 1);
    switch (below(5)) {
      case 0:
        bytes = bytes.subarray(0, at);
        break;
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(pick(PIECES)), bytes.subarray(at)]);
        break;
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.min(bytes.length, at + below(30)))]);
        break;
      case 3:
        if (bytes.length > 0) bytes[at % bytes.length] = below(256);
        break;
      default:
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(Array.from({ length: below(40) }, () => below(256))), bytes.subarray(at)]);
    }
  }
  return bytes;
}

/** What must not be: an end without a word, two ends, a broken event, a hang. */
export async function feedGarbage(app: RunningApp, upstream: FakeUpstream, model: string, count: number, random: Random): Promise<string[]> {
  const wrong: string[] = [];
  for (let i = 0; i < count; i++) {
    const bytes = mutate(random);
    const cut = random.below(bytes.length + 1);
    upstream.on(model, (reply) => {
      if (!reply.call.body.stream) return reply.completion({ content: 'x' });
      reply.bytes(bytes.subarray(0, cut), bytes.subarray(cut)).end();
    });
    const answer = await Promise.race([
      app.chat({ model, messages: user(`garbage ${i}`), stream: true }),
      new Promise<undefined>((done) => void setTimeout(() => done(undefined), 10_000).unref()),
    ]);
    const what = `${i}: ${JSON.stringify(bytes.toString('latin1')).slice(0, 300)}`;
    if (answer === undefined) wrong.push(`hangs: ${what}`);
    else if (answer.status !== 200) {
      if (!answer.json.error?.message) wrong.push(`${answer.status} without an error: ${what}`);
    } else {
      const problem = answer.text.includes('"internal_error"') ? 'an internal error' : endOf(answer, bytes);
      if (problem) wrong.push(`${problem}: ${what} gave ${JSON.stringify(answer.text).slice(-300)}`);
    }
  }
  return wrong;
}

/** Events of hermes' own are whole; one that was relayed is as it came, broken or not. */
function endOf(answer: Reply, came: Buffer): string | undefined {
  const ends: number[] = [];
  const list = answer.text.split('\n\n').filter((event) => event.startsWith('data:'));
  for (const [index, event] of list.entries()) {
    const data = event.slice(5).trim();
    if (data === '[DONE]') ends.push(index);
    else if (!isJson(data)) {
      if (!came.toString().includes(data)) return `an event that is no JSON and did not come so (${data.slice(0, 200)})`;
    } else if (typeof JSON.parse(data) === 'object' && JSON.parse(data) !== null && 'error' in JSON.parse(data)) ends.push(index);
  }
  if (ends.length !== 1) return `${ends.length} ends`;
  return ends[0] === list.length - 1 ? undefined : 'something after the end';
}
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
