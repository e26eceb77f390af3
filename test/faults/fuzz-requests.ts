import { Agent, request as httpRequest } from 'node:http';
import { KEY } from '../app-kit.ts';
import type { Random } from './random.ts';

export interface FuzzReport {
  sent: number;
  statuses: Record<string, number>;
  /** What must not be: an undocumented 5xx, a hang, a stack, a secret. */
  wrong: string[];
}

const PATHS = [
  ...Array<string>(6).fill('/v1/chat/completions'),
  '/v1/chat',
  '/v1/messages',
  '/v1/responses',
  '/v1/models',
  '/v1/models/%',
  '/v1/%2e%2e/admin',
  '//v1//chat',
  '/v1/embeddings',
  '/debug/route',
  '/admin/traces/%00',
  '/admin/traces?limit=-1&cursor=x',
  '/admin/costs?day=x&by=x',
  '/admin/sessions/__proto__',
  '/admin/%',
  '/console/../..',
  '/metrics?x',
  '/',
];
const HEADERS = [
  'x-hermes-session-id',
  'x-hermes-timeout',
  'x-hermes-tools',
  'x-hermes-user-level',
  'x-hermes-priority',
  'x-hermes-verbose',
  'x-hermes-commit',
  'idempotency-key',
  'traceparent',
  'content-encoding',
  'range',
  'x-stainless-retry-count',
];
const FIELDS = [
  'model',
  'messages',
  'stream',
  'session_id',
  'prefer_model',
  'tools',
  'timeout',
  'user_level',
  'service_type',
  'project',
  'request_id',
  'priority',
  'user',
  'max_tokens',
  'n',
  'stop',
  'tool_choice',
  'response_format',
  'stream_options',
  'input',
  'system',
  '__proto__',
  'constructor',
];
const STACK = /\n\s+at \S+ ?\(|node_modules\/|node:internal/;

function junk({ pick, below }: Random): unknown {
  return pick<unknown>([
    null,
    true,
    0,
    -1,
    1e308,
    2 ** 53,
    '',
    ' ',
    '\u0000',
    '\ud800',
    '订单',
    '𝕏',
    'a'.repeat(below(3000)),
    [],
    {},
    [[]],
    [null],
    { a: 1 },
    '__proto__',
    '../../etc/passwd',
    '$' + '{UP_KEY}',
    '\r\nX-Evil: 1',
    [{}],
    [[[[[]]]]],
    { constructor: { prototype: { a: 1 } } },
  ]);
}
function toBody(random: Random): Buffer {
  const { pick, below } = random;
  const message = (): object => ({
    role: pick(['user', 'system', 'assistant', 'tool', 'developer', junk(random)]),
    content: pick(['hi', junk(random), [{ type: 'text', text: junk(random) }], [{ type: pick(['image_url', 'file', junk(random)]), image_url: junk(random) }]]),
    ...(below(3)
      ? {}
      : {
          tool_calls: pick([junk(random), [{ id: junk(random), type: 'function', function: { name: junk(random), arguments: junk(random) } }]]),
          tool_call_id: junk(random),
        }),
  });
  const value: Record<string, unknown> = { messages: Array.from({ length: below(4) }, message) };
  for (let i = below(4); i > 0; i--) value[pick(FIELDS)] = junk(random);
  const text = JSON.stringify(value);
  switch (below(12)) {
    case 0:
      return Buffer.from(text.slice(0, below(text.length)));
    case 1:
      return Buffer.from(Array.from({ length: below(300) }, () => below(256)));
    case 2:
      return Buffer.from('['.repeat(below(20_000)));
    case 3:
      return Buffer.from(`\ufeff${text}`);
    case 4:
      return Buffer.from(`{"messages":[{"role":"user","content":"x"}],"messages":${JSON.stringify(junk(random)) ?? 0}}`);
    case 5:
      return Buffer.from('{"__proto__":{"admin":true},"messages":[{"role":"user","content":"x"}],"seed":9007199254740993,"max_tokens":1e999}');
    default:
      return Buffer.from(text);
  }
}
function toHeaders({ pick, below }: Random): Record<string, string> {
  const value = (): string =>
    pick(['', 'x', '%00', '../..', 'a'.repeat(below(4000)), '-1', '1e99', '__proto__', 'é', 'null', 'true,true', '"', '00-1-1-1', 'gzip', 'bytes=0-']);
  const headers: Record<string, string> = {};
  if (below(12)) headers.authorization = below(5) ? `Bearer ${KEY}` : value();
  if (below(6)) headers['content-type'] = pick(['application/json', 'application/json', 'text/plain', 'multipart/form-data', value()]);
  for (let i = below(3); i > 0; i--) headers[pick(HEADERS)] = value();
  return headers;
}

/** Strange requests, `wide` at a time. 5xx are right only with a code of the table. */
export async function fuzzRequests(port: number, count: number, random: Random, secret: string, wide = 16): Promise<FuzzReport> {
  const report: FuzzReport = { sent: 0, statuses: {}, wrong: [] };
  const agent = new Agent({ keepAlive: true, maxSockets: wide });
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const [method, path, body, headers] = [
        random.below(15) ? 'POST' : random.pick(['GET', 'PUT', 'DELETE', 'OPTIONS', 'HEAD']),
        random.pick(PATHS),
        toBody(random),
        toHeaders(random),
      ];
      report.sent++;
      const what = `${method} ${path} ${body.toString('latin1', 0, 60)}`;
      const over = setTimeout(() => {
        report.wrong.push(`hangs: ${what}`);
        request.destroy();
      }, 10_000);
      const end = (): void => {
        clearTimeout(over);
        resolve();
      };
      const request = httpRequest({ port, host: '127.0.0.1', method, path, agent, headers: { ...headers, 'content-length': body.length } }, (response) => {
        let text = '';
        response.on('data', (data) => (text += data)).on('error', end);
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          report.statuses[status] = (report.statuses[status] ?? 0) + 1;
          if (status >= 500 && !/"code":"(upstream_|overloaded|deadline|session_store)/.test(text))
            report.wrong.push(`${status}: ${what}: ${text.slice(0, 120)}`);
          if (STACK.test(text) || text.includes(secret)) report.wrong.push(`tells too much: ${what}`);
          end();
        });
      }).on('error', end);
      request.end(body);
    });
  await Promise.all(
    Array.from({ length: wide }, async () => {
      while (report.sent < count) await one();
    }),
  );
  agent.destroy();
  return report;
}
