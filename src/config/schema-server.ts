import { isIP } from 'node:net';
import { z } from 'zod';
import { checkRedactRule, detections } from './schema-guards.ts';
import { bytes, captured, decimal, environmentName, flag, milliseconds, text, whole } from './values.ts';

function isNetwork(entry: string): boolean {
  const [address = '', bits, ...more] = entry.split('/');
  const longest = isIP(address) === 6 ? 128 : 32;
  return isIP(address) !== 0 && more.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest));
}

export const server = z
  .strictObject({
    host: text().default('0.0.0.0').describe('Address to listen on. `HOST` and `--host` win over it.'),
    port: whole(0, 65_535).default(8080).describe('Port to listen on; 0 takes a free one. `PORT` and `--port` win over it.'),
    body_limit: bytes()
      .default(20 * 1024 ** 2)
      .describe('Largest request body, bytes or like 20mb; beyond it 413.'),
    max_depth: whole(1, 10_000).default(128).describe('Deepest nesting of a JSON body; beyond it 400.'),
    drain_delay_ms: milliseconds()
      .default(0)
      .describe('Milliseconds between SIGTERM (`/readyz` is 503 at once) and the closing of the listener, for load balancers that look slowly.'),
    drain_timeout_ms: milliseconds()
      .default(30_000)
      .describe('Milliseconds that requests in flight may still take when hermes stops; what is left then ends with an error event.'),
    keep_alive_timeout_ms: milliseconds()
      .default(75_000)
      .describe('Milliseconds that an idle client connection stays open; longer than the load balancer in front.'),
    header_timeout_ms: milliseconds(1).default(30_000).describe('Milliseconds in which a request must have sent its headers.'),
    request_timeout_ms: milliseconds().default(300_000).describe('Milliseconds in which a request must have arrived whole; 0 is no limit.'),
    write_timeout_ms: milliseconds().default(60_000).describe('Milliseconds that a client may leave its answer unread before it is cut off; 0 is no limit.'),
    heartbeat_ms: milliseconds()
      .default(15_000)
      .describe('Milliseconds without anything for the client after which a stream is begun with a comment, and then kept alive; 0 is never.'),
    max_event_bytes: bytes(1024)
      .default(16 * 1024 ** 2)
      .describe(
        'Largest single event of a stream, largest error body of an upstream, and most that is held of one round of tools or one answer of a session: bytes, or like 16mb.',
      ),
    max_in_flight: whole(0).default(0).describe('Requests served at once; beyond it 503 `overloaded` with `retry-after`. 0 is no limit.'),
    max_event_loop_delay_ms: milliseconds()
      .default(0)
      .describe('Mean delay of the event loop over half a second beyond which requests are refused with 503 `overloaded` and `retry-after`. 0 is no limit.'),
    workers: z
      .union([z.literal('auto', { error: 'must be a whole number from 1 to 256, or auto' }), whole(1, 256)])
      .default(1)
      .describe('Processes that share the port; `auto`: one a processor. More than 1 needs Redis and PostgreSQL (docs/operations.md).'),
    trusted_proxies: z
      .array(text().refine(isNetwork, 'must be an address or a network: 10.0.0.1, 10.0.0.0/8, fd00::/8'))
      .default([])
      .describe('Addresses or networks (CIDR) whose `x-forwarded-for` counts; nobody by default.'),
  })
  .prefault({})
  .describe('The listener.');

/** Kinds and keys are those of `guards`; what they find is linear in the text. */
const redactRule = z
  .strictObject({
    kind: z.enum(['pii', 'secrets', 'block_list', 'pattern']).describe('What is looked for.'),
    detect: detections().optional().describe('Of `pii` and `secrets`: what of the kind. Default: all.'),
    words: z.array(text()).min(1).optional().describe('Of `block_list`: words and phrases, found as `keywords` of rules are.'),
    regex: text().optional().describe('Of `pattern`: a regular expression (RE2; `(?i)` at its beginning ignores case).'),
  })
  .superRefine(checkRedactRule);

export const trace = z
  .strictObject({
    capture_content: captured()
      .default(false)
      .describe('`true` keeps messages and answers in traces; `hashes` only what tells whether they were the same; off: sizes, tokens and decisions.'),
    redact: z
      .array(redactRule)
      .default([{ kind: 'secrets' }])
      .describe('What is taken out of captured content: placeholders like `⟦email_1⟧` take its place. Default: secrets.'),
    hash_key_env: environmentName()
      .optional()
      .describe('Variable with the secret under which `hashes` are made (HMAC-SHA-256): without it (SHA-256) short messages can be guessed from them.'),
    sample: decimal(0, 1)
      .default(1)
      .describe('Share of the good requests whose traces are stored and sent to the collector, 0 to 1; failed and degraded ones are always.'),
    keep_days: whole(0).default(14).describe('Days that traces are kept; 0 keeps none.'),
    otlp_endpoint: z
      .string()
      .refine((value) => value === '' || /^https?:\/\/\S+$/.test(value), 'must be an http:// or https:// address')
      .default('')
      .describe('Base address of an OpenTelemetry collector (`/v1/traces` is added); empty is off.'),
  })
  .prefault({})
  .describe('Traces: one per request, a span a step.');

export const metrics = z
  .strictObject({ token_env: environmentName().optional().describe('Variable with the bearer token that `GET /metrics` asks for; absent: open.') })
  .prefault({})
  .describe('Prometheus metrics.');

export const passthrough = z
  .strictObject({
    upstream: text().optional().describe("A provider's name or a model's id: where other `/v1/*` paths go. Absent: they are 404."),
    body_limit: bytes()
      .default(1024 ** 3)
      .describe('Largest upload that is passed through, bytes or like 1gb.'),
    responses: flag().default(false).describe('Pass `/v1/responses` through instead of translating it.'),
  })
  .prefault({})
  .describe('Other `/v1/*` paths, passed through unchanged.');

export const pipeline = z
  .strictObject({
    plugins_dir: text()
      .optional()
      .describe("Folder of your own plugins, relative to this file; it must exist. Default: the working directory's `plugins/`, if there is one."),
    order: z.array(text()).default([]).describe('Names of plugins in the order in which they must stand; the others keep their places.'),
  })
  .prefault({})
  .describe('The plugin pipeline.');

export const plugins = z.record(z.string(), z.unknown()).default({}).describe("Settings of plugins by name; each is checked by the plugin's own schema.");

export const log = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('Least level that is written. `LOG_LEVEL` wins over it.'),
  })
  .prefault({})
  .describe('The log (JSON lines on stdout).');
