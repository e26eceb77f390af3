import { z } from 'zod';
import type { RunLocally } from '../contracts/local-tool.ts';
import { address, bytes, environmentName, flag, headerMap, id, milliseconds, seconds, stringMap, text, whole } from './values.ts';

export const session = z
  .strictObject({
    storage: z
      .strictObject({
        hot_backend: z
          .enum(['memory', 'redis'])
          .optional()
          .describe('Recent history. Default: `redis` when `REDIS_URL` is set, else `memory`. `redis` without an address is redis://127.0.0.1:6379.'),
        hot_ttl_seconds: seconds(1).default(600).describe('Seconds without use after which a session leaves the hot store (never the cold one).'),
        cold_backend: z.enum(['sqlite', 'postgres']).optional().describe('The whole history, for ever. Follows `DATABASE_URL`; against it is an error.'),
        redis_url: text()
          .optional()
          .describe(
            'Address of Redis: redis:// or rediss://; several nodes with commas are a cluster; redis+sentinel://host:26379/name asks sentinels for the master. `REDIS_URL` wins over it.',
          ),
        database_url: text()
          .optional()
          .describe('`sqlite:///./data/hermes.db` (relative to the working directory) or `postgres://…`. `DATABASE_URL` wins over it.'),
      })
      .prefault({})
      .describe('Where sessions are kept.'),
    max_history_messages: whole(1).default(50).describe('Newest messages that are recalled.'),
    max_context_tokens: whole(1).default(12_000).describe('Tokens of the request that is sent, history included.'),
    reserve_tokens: whole(0).default(200).describe('Tokens that always stay free.'),
    concurrency: z.enum(['serialize', 'reject']).default('serialize').describe('Two turns of one session at once: one waits, or gets 409 `session_busy`.'),
    durability: z
      .enum(['strict', 'relaxed'])
      .default('strict')
      .describe('Cold store away: `strict` answers session requests with 503, `relaxed` goes on with what is hot.'),
    retention_days: whole(0).default(0).describe('Days that sessions are kept; 0 keeps for ever.'),
    lease_ms: milliseconds(1000).default(8000).describe('Milliseconds that the lease of a crashed instance outlives it, at most.'),
    summarize_dropped: z
      .strictObject({
        model: text().describe('Model (id) that sums up.'),
        max_tokens: whole(16).default(400).describe('Longest summary, tokens.'),
      })
      .optional()
      .describe('History that trimming would drop is summed up instead. Absent: dropped.'),
  })
  .refine((value) => value.reserve_tokens < value.max_context_tokens, { path: ['reserve_tokens'], error: 'must be less than max_context_tokens' })
  .prefault({})
  .describe('Conversations.');

export const trim = z
  .strictObject({ stateless: flag().default(false).describe('Also trim requests without a session.') })
  .prefault({})
  .describe('Fitting the context.');

export const idempotency = z
  .strictObject({
    ttl_seconds: seconds(1).default(86_400).describe('Seconds that an outcome is kept for replay.'),
    max_bytes: bytes()
      .default(64 * 1024 ** 2)
      .describe('Most memory for kept outcomes, bytes or like 64mb.'),
    sdk_retry_window_seconds: seconds(0).default(600).describe("Seconds in which an SDK's own retry is recognised without an id."),
    rejoin_seconds: seconds(0)
      .default(10)
      .describe('Seconds in which a repeat may join after the client hung up, before a tool with side effects is given up.'),
  })
  .prefault({})
  .describe('Requests that run once.');

export const redis = z
  .strictObject({ key_prefix: z.string().max(128).default('hermes:').describe('What every Redis key begins with.') })
  .prefault({})
  .describe('Redis as a whole.');

const mcp = z
  .strictObject({
    command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe('Program that is started and spoken to over its standard input and output, with its arguments: `[npx, -y, some-server]`.'),
    env: stringMap()
      .optional()
      .describe(
        'Variables for that program, beside PATH, HOME and the like; it sees no others. Values may come from the environment, as everywhere in the file.',
      ),
    url: address().optional().describe('Address of a server over streamable HTTP.'),
    headers: headerMap().optional().describe('Headers for that address.'),
    secret_env: environmentName().optional().describe('Variable with the token that goes as `authorization: Bearer`. Unset refuses the start.'),
  })
  .superRefine(({ command, env, url, headers, secret_env }, context) => {
    const wrong = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (!command && !url) wrong([], 'needs `command` or `url`');
    if (command && url) wrong([], 'has both `command` and `url`: give one');
    if (url && env) wrong(['env'], 'goes with `command`');
    if (command && headers) wrong(['headers'], 'goes with `url`');
    if (command && secret_env) wrong(['secret_env'], 'goes with `url`');
  });

const described = {
  id: id().describe('Name in rules and requests; unique. Dots are mapped for models that do not take them.'),
  description: z.string().optional().describe('What the model reads.'),
  parameters: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the parameters; calls are checked against it.'),
};
/** What holds for a tool, wherever it runs. */
const settings = {
  timeout_ms: milliseconds(1).default(10_000).describe('Milliseconds for one call.'),
  retries: whole(0, 20).default(0).describe('Further tries after a time-out or a failure that is safe to retry, under the same `request_id`.'),
  side_effects: flag().optional().meta({
    description:
      'It changes something: never called twice for one id. Say false when it only reads. Tools of an MCP server: true unless it marks them read-only.',
    default: true,
  }),
  allow: z
    .strictObject({
      services: z.array(text()).default(['*']).describe('Services that may use it.'),
      user_levels: z.array(text()).default(['*']).describe('User levels that may use it.'),
    })
    .prefault({})
    .describe('Who may use it.'),
  summary: z
    .strictObject({
      keep_last: whole(0).default(3).describe('Newest elements of arrays that stay.'),
      max_tokens: whole(16).default(400).describe('Tokens of a result beyond which it is reduced for the model; the store keeps the whole.'),
      fields: z.array(text()).min(1).optional().describe('Names of the only fields that stay in a reduced result, wherever they stand in it.'),
    })
    .optional()
    .describe('Reducing long results. Absent: only when the context does not fit.'),
  dedupe: z
    .strictObject({
      by: z
        .array(z.string().regex(/^(user|session_id|service|project|params(\..+)?)$/, 'must be user, session_id, service, project, params or params.NAME'))
        .min(1)
        .describe('Fields that make two calls the same action.'),
      window_seconds: seconds(1).default(600).describe('Seconds in which they are one.'),
    })
    .optional()
    .describe('The same action asked for twice, even by different requests, is one.'),
};

const tool = z
  .strictObject({
    ...described,
    endpoint: address().optional().describe('Address that is called: `POST {tool, request_id, session_id, user, params}`.'),
    secret_env: environmentName().optional().describe('Variable with the secret that signs the calls. Unset refuses the start.'),
    mcp: mcp.optional().describe('Instead of `endpoint`: an MCP server, whose tools are offered as `<id>.<tool>` under the settings of this entry.'),
    ...settings,
  })
  .superRefine((value, context) => {
    if (value.endpoint === undefined && value.mcp === undefined)
      context.addIssue({ code: 'custom', path: ['endpoint'], message: 'needs `endpoint` (or `mcp`)' });
    if (value.mcp === undefined) return;
    for (const key of ['endpoint', 'description', 'parameters', 'secret_env'] as const)
      if (value[key] !== undefined) context.addIssue({ code: 'custom', path: [key], message: 'does not go with `mcp`: the server says it' });
  });

export const tools = z.array(tool).default([]).describe('Server-side tools, run by hermes.');

/** A tool that a plugin adds. */
export const localTool = z.strictObject({
  ...described,
  ...settings,
  run: z.custom<RunLocally>((value) => typeof value === 'function', 'must be a function: (params, call) => result'),
});
