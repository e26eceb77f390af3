import type { Answer, Exchange, Facts } from '../contracts/exchange.ts';
import { tokensOf } from '../wire/usage.ts';
import { toHeaderText } from './header-text.ts';

/** Integer nano-dollars as dollars, exact to the last digit. */
export function toUsd(nano: number): number {
  return Number((nano / 1e9).toFixed(9));
}

/** Never in exponent form: `0.0000001`. */
export function toDecimal(usd: number): string {
  return usd.toFixed(9).replace(/\.?0+$/, '') || '0';
}

/** What an answer cost: every call of the request; undefined when there was none or nobody knows a price. */
export function costOf(exchange: Exchange): number | undefined {
  let nano: number | undefined;
  for (const { costNanoUsd } of exchange.calls) if (costNanoUsd !== undefined) nano = (nano ?? 0) + costNanoUsd;
  return nano === undefined ? undefined : toUsd(nano);
}

/** The `hermes` object of a body: SPEC section 2. */
export function toHermesObject(exchange: Exchange, facts: Facts, overheadMs: number): Record<string, unknown> {
  const cost = costOf(exchange);
  return {
    request_id: facts.requestId ?? exchange.id,
    session_id: facts.sessionId ?? exchange.ask.sessionId ?? null,
    route: facts.route ?? exchange.route?.rule ?? null,
    model: facts.model ?? null,
    upstream: facts.upstream ?? null,
    attempts: attemptsOf(exchange, facts),
    degraded: facts.degraded ?? false,
    overhead_ms: round(overheadMs),
    tokens: toTokens(exchange, facts),
    cost_usd: cost ?? null,
    ...(exchange.ask.sessionId === undefined
      ? {}
      : {
          session: {
            messages: facts.sessionMessages ?? 0,
            trimmed: facts.trimmedMessages ?? 0,
            tokens: facts.contextTokens ?? exchange.session?.historyTokens ?? 0,
          },
        }),
    tool_calls: (facts.toolCalls ?? []).map(({ tool, request_id, status, ms }) => ({ tool, request_id, status, ms })),
    unavailable_tools: facts.unavailableTools ?? [],
    dropped_params: facts.droppedParams ?? [],
    ...(facts.upstreamFinishReason ? { upstream_finish_reason: facts.upstreamFinishReason } : {}),
  };
}

export function attemptsOf(exchange: Exchange, facts: Facts): number {
  return facts.attempts ?? exchange.callsBegun;
}

export function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}

function toTokens(exchange: Exchange, facts: Facts): Record<string, unknown> {
  const calls = exchange.calls;
  if (calls.length > 0) {
    const sum = (pick: (tokens: (typeof calls)[number]['tokens']) => number): number => calls.reduce((total, call) => total + pick(call.tokens), 0);
    return {
      input: sum((t) => t.input),
      cached: sum((t) => t.cached),
      output: sum((t) => t.output),
      reasoning: sum((t) => t.reasoning),
      estimated: calls.some(({ estimated }) => estimated),
    };
  }
  const tokens = tokensOf(facts.usage);
  return { input: tokens.input, cached: tokens.cached, output: tokens.output, reasoning: tokens.reasoning, estimated: facts.usage === undefined };
}

/** `degraded` and `original` are top-level whenever they apply. */
export function toMarks(facts: Facts): Record<string, unknown> {
  return facts.degraded ? { degraded: true, ...(facts.original ? { original: facts.original } : {}) } : {};
}

/** Response headers that say what was decided; only what is known. */
export function addFactHeaders(headers: Record<string, string>, exchange: Exchange, { facts, headers: own }: Answer, overheadMs: number): void {
  const route = facts.route ?? exchange.route?.rule;
  if (route !== undefined) headers['x-hermes-route'] = toHeaderText(route);
  const model = facts.model ?? exchange.route?.model;
  if (model !== undefined) headers['x-hermes-model'] = toHeaderText(model);
  if (facts.upstream !== undefined) headers['x-hermes-upstream'] = toHeaderText(facts.upstream);
  const attempts = attemptsOf(exchange, facts);
  // None is worth telling where that is what was gained.
  if (attempts > 0 || own['x-hermes-cache'] === 'hit') headers['x-hermes-attempts'] = String(attempts);
  if (exchange.route !== undefined || facts.route !== undefined) headers['x-hermes-overhead-ms'] = String(round(overheadMs));
  if (facts.degraded) headers['x-hermes-degraded'] = 'true';
  if (facts.replayed) headers['x-hermes-idempotent-replay'] = 'true';
  const sessionMessages = facts.sessionMessages ?? exchange.session?.historyMessages;
  if (sessionMessages !== undefined) headers['x-hermes-session-messages'] = String(sessionMessages);
}
