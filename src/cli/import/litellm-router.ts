import type { Findings } from './findings.ts';
import { type Block, present, toBlock, toList, toMilliseconds, toNumber, toText } from './values.ts';

/** What LiteLLM says for all models, from `router_settings` and `litellm_settings`; the former wins. */
export interface RouterSettings {
  failover: Record<string, unknown>;
  timeoutMs: number | undefined;
  firstTokenTimeoutMs: number | undefined;
  /** Group to the groups that answer for it, in order. */
  fallbacks: ReadonlyMap<string, readonly string[]>;
  defaultFallbacks: readonly string[];
  aliases: ReadonlyMap<string, readonly string[]>;
}

const STRATEGIES: Readonly<Record<string, string>> = {
  'simple-shuffle': 'weighted_round_robin',
  'least-busy': 'least_latency',
  'latency-based-routing': 'least_latency',
  'usage-based-routing': 'weighted_round_robin',
  'usage-based-routing-v2': 'weighted_round_robin',
};
const TAKEN = new Set([
  'routing_strategy',
  'num_retries',
  'timeout',
  'request_timeout',
  'stream_timeout',
  'allowed_fails',
  'cooldown_time',
  'fallbacks',
  'context_window_fallbacks',
  'default_fallbacks',
  'model_group_alias',
  'redis_host',
  'redis_port',
  'redis_password',
  'redis_url',
]);
/** Needless here: what an upstream cannot take is dropped and named, logs and metrics are always there. */
const NEEDLESS = new Set(['drop_params', 'modify_params', 'set_verbose', 'json_logs', 'enable_pre_call_checks', 'telemetry']);

export function toRouterSettings(file: Block, findings: Findings): RouterSettings {
  const [router, litellm] = [toBlock(file.router_settings), toBlock(file.litellm_settings)];
  findings.rest('router_settings', router, new Set([...TAKEN, ...NEEDLESS]));
  findings.rest('litellm_settings', litellm, new Set([...TAKEN, ...NEEDLESS]));
  const of = (key: string): unknown => router[key] ?? litellm[key];
  if (['redis_host', 'redis_url'].some((key) => of(key) !== undefined))
    findings.add('router_settings.redis_host', 'becomes the variable REDIS_URL, redis://:password@host:port');
  return {
    failover: present({
      strategy: toStrategy(toText(of('routing_strategy')), findings),
      max_attempts: toAttempts(toNumber(of('num_retries'))),
      failure_threshold: toThreshold(toNumber(of('allowed_fails'))),
      cooldown_ms: toMilliseconds(of('cooldown_time')),
    }),
    timeoutMs: toMilliseconds(of('timeout') ?? of('request_timeout')),
    firstTokenTimeoutMs: toMilliseconds(of('stream_timeout')),
    fallbacks: toFallbacks(of('fallbacks'), of('context_window_fallbacks'), findings),
    defaultFallbacks: toList(of('default_fallbacks')).filter((name) => typeof name === 'string'),
    aliases: toAliases(toBlock(of('model_group_alias'))),
  };
}

function toStrategy(name: string | undefined, findings: Findings): string | undefined {
  if (name === undefined) return undefined;
  const strategy = STRATEGIES[name];
  if (strategy === undefined || (name !== 'simple-shuffle' && name !== 'latency-based-routing'))
    findings.add('router_settings.routing_strategy', `"${name}" has no exact counterpart: ${strategy ?? 'weighted_round_robin'} was taken`);
  return strategy;
}

/** LiteLLM counts tries after the first. */
export function toAttempts(retries: number | undefined): number | undefined {
  return retries === undefined ? undefined : Math.min(100, Math.max(1, Math.round(retries) + 1));
}
/** LiteLLM counts the failures that are still allowed. */
function toThreshold(allowed: number | undefined): number | undefined {
  return allowed === undefined ? undefined : Math.max(1, Math.round(allowed) + 1);
}

function toFallbacks(plain: unknown, contextWindow: unknown, findings: Findings): Map<string, string[]> {
  const fallbacks = new Map<string, string[]>();
  for (const entry of toList(plain)) {
    for (const [group, others] of Object.entries(toBlock(entry))) fallbacks.set(group, [...(fallbacks.get(group) ?? []), ...toList(others).map(String)]);
  }
  if (toList(contextWindow).length > 0)
    findings.add(
      'context_window_fallbacks',
      'is not needed between the upstreams of one model (a larger one is tried by itself); list such a model under failover.upstreams',
    );
  return fallbacks;
}

/** Group to its other names. An entry may be `{ model, hidden }`. */
function toAliases(block: Block): Map<string, string[]> {
  const aliases = new Map<string, string[]>();
  for (const [alias, target] of Object.entries(block)) {
    const group = toText(target) ?? toText(toBlock(target).model);
    if (group !== undefined) aliases.set(group, [...(aliases.get(group) ?? []), alias]);
  }
  return aliases;
}
