import type { Config } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { ChatRequest } from '../wire/chat.ts';

export interface Budget {
  /** The smaller of `max_context_tokens` and what the window leaves beside the answer. */
  total: number;
  /** Up to here history goes along: `total` less the reserve. */
  wanted: number;
  /** Up to here the target can serve at all: its window less the answer and the reserve. */
  possible: number;
  window: number | undefined;
  answer: number;
  reserve: number;
}

export function toBudget(config: Config, request: ChatRequest, target: UpstreamTarget): Budget {
  const { max_context_tokens, reserve_tokens: reserve } = config.session;
  const { contextWindow: window, maxTokens } = target;
  const asked = request.max_completion_tokens ?? request.max_tokens ?? maxTokens ?? 0;
  const answer = Math.min(asked, maxTokens ?? asked);
  const left = window === undefined ? Number.POSITIVE_INFINITY : window - answer;
  const total = Math.max(0, Math.min(max_context_tokens, left));
  return { total, wanted: total - reserve, possible: left - reserve, window, answer, reserve };
}
