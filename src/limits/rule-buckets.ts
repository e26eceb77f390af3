import type { Config, LimitConfig, ModelEntry } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { BucketDemand } from '../contracts/hot-store.ts';
import { estimateInputTokens } from '../upstream/estimate.ts';
import { isCount } from '../wire/count.ts';
import { limitMatches } from './limit-match.ts';

export interface RuleBucket {
  /** As refusals name it: `user_requests_per_minute`. */
  name: string;
  unit: 'requests' | 'tokens';
  demand: BucketDemand;
  /** Its capacity, as headers tell it. */
  limit: string;
}

/** Where neither the request nor the model bounds the answer. */
const USUAL_ANSWER_TOKENS = 1024;
/** No model says more in one answer: what is asked beyond it must not become a debt that others wait for. */
const MOST_ANSWER_TOKENS = 10_000_000;

/** The buckets that this exchange draws on: one a rule and unit, by the rule's distinct value. */
export function bucketsOf(exchange: Exchange): RuleBucket[] {
  const buckets: RuleBucket[] = [];
  let tokens: number | undefined;
  for (const named of namesOf(exchange.config)) {
    const { rule } = named;
    const value = distinctValue(rule, exchange);
    if (value === undefined) continue;
    if (rule.match !== undefined && !limitMatches(rule.match, exchange)) continue;
    const { requests, tokensKey, tokensLimit } = bucketsFor(named, value);
    if (requests !== undefined) buckets.push(requests);
    if (rule.tokens_per_minute !== undefined) {
      tokens ??= demandedTokens(exchange);
      const demand = { key: tokensKey, amount: tokens, capacity: rule.tokens_per_minute, perMinute: rule.tokens_per_minute };
      buckets.push({ name: named.tokensName, unit: 'tokens', demand, limit: tokensLimit });
    }
  }
  return buckets;
}

interface NamedRule {
  rule: LimitConfig;
  /** In the keys of its buckets. */
  name: string;
  /** Its buckets as refusals name them. */
  requestsName: string;
  tokensName: string;
  /** By distinct value. */
  known: Map<string, ValueBuckets>;
}
/** What is the same for every request of one distinct value: a key that was used once has its hash. */
interface ValueBuckets {
  requests: RuleBucket | undefined;
  tokensKey: string;
  tokensLimit: string;
}
const MOST_KNOWN = 10_000;

function bucketsFor({ rule, name, requestsName, known }: NamedRule, value: string): ValueBuckets {
  let found = known.get(value);
  if (found === undefined) {
    const { requests_per_minute: perMinute, burst } = rule;
    const requests: RuleBucket | undefined =
      perMinute === undefined
        ? undefined
        : {
            name: requestsName,
            unit: 'requests',
            demand: { key: `${name}:${value}:requests`, amount: 1, capacity: burst ?? perMinute, perMinute },
            limit: String(burst ?? perMinute),
          };
    found = { requests, tokensKey: `${name}:${value}:tokens`, tokensLimit: String(rule.tokens_per_minute) };
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(value, found);
  }
  return found;
}
// By what a rule is, not by its place, so that buckets survive a reload; of rules that are alike each has its own.
const namedRules = new WeakMap<Config, NamedRule[]>();
function namesOf(config: Config): NamedRule[] {
  let rules = namedRules.get(config);
  if (rules === undefined) {
    const seen = new Map<string, number>();
    rules = config.limits.map((rule) => {
      const kind = `${rule.per}:${rule.match ? encodeURIComponent(JSON.stringify(rule.match)) : ''}`;
      const nth = (seen.get(kind) ?? 0) + 1;
      seen.set(kind, nth);
      const name = nth === 1 ? kind : `${kind}#${nth}`;
      return { rule, name, requestsName: `${rule.per}_requests_per_minute`, tokensName: `${rule.per}_tokens_per_minute`, known: new Map() };
    });
    namedRules.set(config, rules);
  }
  return rules;
}

/** Values are encoded one by one: no id can forge another's bucket. Users and sessions are counted per project. */
function distinctValue(rule: LimitConfig, exchange: Exchange): string | undefined {
  const { principal, caller, ask } = exchange;
  if (principal === undefined || caller === undefined) return undefined;
  switch (rule.per) {
    case 'user':
      return caller.user === undefined ? `key/${encoded(principal.id)}` : `user/${encoded(caller.project)}/${encoded(caller.user)}`;
    case 'service':
      return encoded(caller.service);
    case 'project':
      return encoded(caller.project);
    case 'key':
      return encoded(principal.id);
    case 'session':
      return ask.sessionId === undefined ? undefined : `${encoded(caller.project)}/${encoded(ask.sessionId)}`;
  }
}

/** Most names are as they are. */
const PLAIN = /^[\w.-]*$/;
function encoded(value: string): string {
  return PLAIN.test(value) ? value : encodeURIComponent(value);
}

/**
 * What the request carries and its `max_tokens`: the asked ones up to the ceiling of the model that it names (of all models, where
 * it names none), else that model's own, else the default model's. A body that is not read here reserves nothing: what it used is told at the end.
 */
function demandedTokens({ request, inbound, ask, config }: Exchange): number {
  if (inbound.bytes === undefined && request.messages.length === 0) return 0;
  const { registry } = config;
  const name = ask.preferModel ?? request.model ?? undefined;
  const model = name === undefined || name === 'auto' ? undefined : registry.find(name);
  const asked = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const own = (model ?? registry.find(registry.defaultModel))?.maxTokens ?? USUAL_ANSWER_TOKENS;
  const answer = isCount(asked) ? Math.min(asked, ceilingOf(model ? [model] : [...registry.models.values()])) : own;
  return estimateInputTokens(request) + answer * (isCount(request.n) ? request.n : 1);
}

/** The longest answer that any of these models can give. */
function ceilingOf(models: readonly ModelEntry[]): number {
  if (models.length === 0) return MOST_ANSWER_TOKENS;
  return Math.min(MOST_ANSWER_TOKENS, Math.max(...models.map(({ maxTokens }) => maxTokens ?? MOST_ANSWER_TOKENS)));
}
