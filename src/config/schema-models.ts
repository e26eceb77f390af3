import { z } from 'zod';
import { address, days, decimal, environmentName, flag, headerMap, hours, id, milliseconds, stringMap, text, timezone, whole } from './values.ts';

export const FAILOVER_DEFAULTS = {
  strategy: 'weighted_round_robin',
  failure_threshold: 5,
  cooldown_ms: 30_000,
  max_attempts: 3,
  max_retry_after_ms: 5000,
  affinity: 'none',
  hedge_ms: 0,
  commit: 'content',
} as const;
export const TIMEOUT_MS = 120_000;
export const FIRST_TOKEN_TIMEOUT_MS = 30_000;
export const MAX_QUEUE = 100;

const price = z.strictObject({
  input_per_million: decimal(0).describe('US dollars for a million input tokens.'),
  output_per_million: decimal(0).describe('US dollars for a million output tokens.'),
  cached_input_per_million: decimal(0).optional().describe('For a million input tokens from the cache. Default: the input price.'),
  cache_write_per_million: decimal(0).optional().describe('For a million tokens written to the cache. Default: the input price.'),
  reasoning_per_million: decimal(0).optional().describe('For a million reasoning tokens, instead of the output price.'),
  per_request: decimal(0).optional().describe('US dollars for each answered call.'),
  from: z
    .string()
    .refine((value) => /^\d{4}-\d\d-\d\d/.test(value) && !Number.isNaN(Date.parse(value)), 'must be a date like 2026-12-01')
    .optional()
    .describe('Date from which it holds; of several the newest begun applies.'),
  bands: z
    .array(
      z.strictObject({
        days: days().optional().describe('Days like mon-fri. Default: all.'),
        hours: hours().describe('Hours like "01:00-04:00", half-open, may pass midnight; by start time.'),
        timezone: timezone().optional().describe('Default: `cost.timezone`.'),
        multiply: decimal(0).describe('Factor for the token prices.'),
      }),
    )
    .default([])
    .describe('Hours in which the prices are multiplied.'),
});
const pricing = z.union([price, z.array(price).min(1)]).describe('US dollars; one entry, or a list with `from` dates. Absent: unpriced.');

const supports = z.strictObject({
  vision: flag().optional().describe('Takes images. Default true.'),
  tools: flag().optional().describe('Takes tools. Default true.'),
  json_schema: flag().optional().describe('Takes `response_format: json_schema`. Default true.'),
});
/** What upstreams differ in; the same names in a provider, a model and an entry of `upstreams`. */
const settings = {
  api_base: address().optional().describe('What an SDK would be given as its base URL; for `anthropic` with or without /v1.'),
  api_key_env: environmentName().optional().describe('Variable that holds the key. Unset: a warning, and 500 `upstream_key_missing` when it is called.'),
  api_version: text().optional().describe('Version header (`anthropic`: 2023-06-01) or query (`api-version` of Azure).'),
  headers: headerMap().optional().describe('Headers added to every call.'),
  query: stringMap().optional().describe('Query parameters added to every call.'),
  extra_body: z.record(z.string(), z.unknown()).optional().describe('Fields added to every request body.'),
  supports: supports.optional().describe('Abilities; a request is never sent by failover, schedule or budget where it cannot be served.'),
  reasoning: z
    .enum(['send', 'strip'])
    .optional()
    .describe('Whether reasoning in the history is sent. Default: to the provider that made it, stripped for others.'),
  max_tokens_field: z
    .enum(['max_tokens', 'max_completion_tokens'])
    .optional()
    .describe('Name of the field that bounds the answer. Default: by the model name.'),
  stream_options: flag().optional().describe('Ask for usage in streams (`stream_options.include_usage`). Default true; false for servers that refuse it.'),
  empty_reasoning: flag()
    .optional()
    .describe(
      'Wants `reasoning_content` on every assistant message with tool calls, if only empty, also where another vendor made it. Default: learned from its 400.',
    ),
  developer_role: flag().optional().describe('Knows the role `developer`; false turns it into `system`. Default: by the model name.'),
  tool_call_ids: z.enum(['any', 'nine']).optional().describe('`nine`: ids of tool calls must be nine letters or digits (Mistral). Default any.'),
  generation: text()
    .optional()
    .describe("`anthropic`: the vendor's model whose rules hold, like claude-sonnet-4-5, when the model name does not tell (gateways, deployments)."),
  path: z
    .string()
    .regex(/^\/[^\s?#]*$/, 'must be a path like /deployments/{model}/chat/completions')
    .optional()
    .describe('Path after `api_base` instead of the usual one; `{model}` is the model name (Azure: /openai/deployments/{model}/chat/completions).'),
};
export const QUIRKS = ['generation', 'max_tokens_field', 'stream_options', 'developer_role', 'empty_reasoning', 'tool_call_ids', 'path'] as const;

const limitsOfCalls = {
  max_tokens: whole(1).optional().describe('Default and ceiling of the answer, tokens.'),
  context_window: whole(1).optional().describe('Tokens that request and answer may have together. Absent: unstated, tried for large requests.'),
  timeout_ms: milliseconds(1)
    .optional()
    .meta({ description: "One attempt in milliseconds, to the response's end; in a stream: between chunks.", default: TIMEOUT_MS }),
  first_token_timeout_ms: milliseconds(1)
    .optional()
    .meta({ description: 'Streams: milliseconds until the first content. At most `timeout_ms` by default.', default: FIRST_TOKEN_TIMEOUT_MS }),
  max_concurrent: whole(0)
    .optional()
    .meta({ description: 'Calls of one upstream at once, by each process; further ones wait, and services take turns. 0 is no bound.', default: 0 }),
  max_queue: whole(0)
    .optional()
    .meta({ description: 'Calls that may wait for `max_concurrent`; further ones go to another upstream, or get 503 `overloaded`.', default: MAX_QUEUE }),
};
const upstream = z.strictObject({
  target: text().describe("A model's id (that model's address, key and name) or a provider's name."),
  model_name: text()
    .optional()
    .describe("The vendor's name of the model. With a provider's name: else the model's own, else that of the first registered model of the provider."),
  weight: whole(0, 1_000_000).default(1).describe('Share of the traffic; 0 serves nothing.'),
  ...settings,
  ...limitsOfCalls,
  pricing: pricing.optional(),
});
const failover = z.strictObject({
  strategy: z
    .enum(['weighted_round_robin', 'priority', 'least_latency'])
    .optional()
    .meta({ description: 'How an upstream is chosen; `priority` is list order.', default: FAILOVER_DEFAULTS.strategy }),
  upstreams: z.array(upstream).min(1).optional().describe('Where the model is served. Absent: at its own address.'),
  failure_threshold: whole(1)
    .optional()
    .meta({ description: 'Failures in a row that open the breaker of an upstream.', default: FAILOVER_DEFAULTS.failure_threshold }),
  cooldown_ms: milliseconds()
    .optional()
    .meta({ description: 'Milliseconds that an open breaker keeps traffic away before one probe.', default: FAILOVER_DEFAULTS.cooldown_ms }),
  max_attempts: whole(1, 100).optional().meta({ description: 'Tries for one model call, over all upstreams.', default: FAILOVER_DEFAULTS.max_attempts }),
  max_retry_after_ms: milliseconds()
    .optional()
    .meta({ description: 'Longest `retry-after` in milliseconds that is waited for rather than degrading.', default: FAILOVER_DEFAULTS.max_retry_after_ms }),
  affinity: z
    .enum(['none', 'session'])
    .optional()
    .meta({ description: '`session` keeps a session on its upstream (prompt caches) while that is healthy.', default: FAILOVER_DEFAULTS.affinity }),
  hedge_ms: milliseconds().optional().meta({
    description: 'Of an `urgent` request: milliseconds without content after which a second upstream is asked as well; 0 is never.',
    default: FAILOVER_DEFAULTS.hedge_ms,
  }),
  commit: z.enum(['content', 'complete']).optional().meta({
    description: '`complete`: a stream is sent only when it is whole, so that one cut half-way can begin anew elsewhere.',
    default: FAILOVER_DEFAULTS.commit,
  }),
  fallback_target: text().optional().describe('Model (id) that answers, marked degraded, when every upstream is down. Chains are allowed, circles are not.'),
});
export const models = z
  .array(
    z.strictObject({
      id: id().describe('Name in rules, requests and books. An id that stands twice is merged; later keys win.'),
      provider: text().optional().describe("A provider's name, or a type: `openai`, `anthropic`, `simulator`, or a file in the plugins folder."),
      model_name: text().optional().describe("The vendor's name of the model. Default: the id."),
      ...settings,
      ...limitsOfCalls,
      tier: z.enum(['low', 'mid', 'high']).optional().describe('Price class, for `cost.schedule`.'),
      aliases: z.array(text()).optional().describe('Other names that requests may use.'),
      pricing: pricing.optional(),
      failover: failover.optional().describe('Upstreams, retries, breaker and fallback.'),
    }),
  )
  .min(1, 'needs at least one model')
  .describe('The model registry.');

export const providers = z
  .record(
    z.string(),
    z.strictObject({
      type: text().optional().describe('`openai` (and every compatible server), `anthropic`, `simulator`, or a file in the plugins folder. Default: its name.'),
      ...settings,
    }),
  )
  .default({})
  .describe('What upstreams share. `openai` and `anthropic` are known without an entry.');
