import type { ModelEntry } from '../contracts/config.ts';
import type { Exchange, RouteDecision, UpstreamTarget } from '../contracts/exchange.ts';
import type { ChatRequest } from '../wire/chat.ts';

/** What the rooms beneath know of a request's needs. */
export interface ServeDeps {
  allows(patterns: readonly string[], name: string): boolean;
  /** What the request needs and the target cannot do; undefined: nothing. */
  missingAbility(target: UpstreamTarget, request: ChatRequest): string | undefined;
  /** Would server-side tools be on offer under this decision? */
  offersTools(exchange: Exchange, decision: RouteDecision): boolean;
  estimateTokens(request: ChatRequest): number;
}

/**
 * May this model take the request over: permitted to the key, with an upstream that has its key, can do what the request needs,
 * and takes it in? Only requests of a session can be cut to fit.
 */
export function canServe(deps: ServeDeps, exchange: Exchange, decision: RouteDecision, model: ModelEntry): boolean {
  if (!deps.allows(exchange.principal?.models ?? [], model.id)) return false;
  const { request } = exchange;
  const tokens = exchange.session === undefined ? deps.estimateTokens(request) : 0;
  const isAble = (target: UpstreamTarget): boolean =>
    target.weight > 0 &&
    (target.apiKeyEnv === undefined || Boolean(target.apiKey)) &&
    (target.contextWindow === undefined || tokens < target.contextWindow) &&
    deps.missingAbility(target, request) === undefined &&
    (target.supports.tools || !deps.offersTools(exchange, decision));
  return model.upstreams.some(isAble);
}
