import type { TokenCounts } from '../contracts/exchange.ts';
import type { Usage } from './chat.ts';

/** OpenAI's usage as our counts: input includes the cached ones, output the reasoning ones. What is not a count is 0. `prompt_cache_hit_tokens`: DeepSeek's name. */
export function tokensOf(usage: Usage | null | undefined): TokenCounts {
  const input = count(usage?.prompt_tokens);
  const output = count(usage?.completion_tokens);
  return {
    input,
    cached: Math.min(input, count(usage?.prompt_tokens_details?.cached_tokens ?? usage?.prompt_cache_hit_tokens ?? usage?.cached_tokens)),
    cacheWrite: Math.min(input, count(usage?.prompt_tokens_details?.cache_write_tokens)),
    output,
    reasoning: Math.min(output, count(usage?.completion_tokens_details?.reasoning_tokens)),
  };
}

/** Counts that mean something: all zeros is how some servers say that they do not know. */
export function isUsage(value: unknown): value is Usage {
  if (typeof value !== 'object' || value === null) return false;
  const { prompt_tokens, completion_tokens } = value as Partial<Usage>;
  return count(prompt_tokens) + count(completion_tokens) > 0;
}

function count(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? Math.round(value) : 0;
}
