import { ANTHROPIC_FINISH } from '../../wire/anthropic-finish.ts';
import type { FinishReason, Usage } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';

/** Anthropic's counters as they came; cumulative in a stream, so the latest of each field holds and nothing is added. */
export type Counters = Record<string, unknown>;

export function latest(before: Counters, update: unknown): Counters {
  if (!isRecord(update)) return before;
  return { ...before, ...Object.fromEntries(Object.entries(update).filter(([, value]) => value !== null && value !== undefined)) };
}

const count = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0);

/** Anthropic's input excludes what the cache wrote and read, OpenAI's prompt includes it: the one conversion, so that each token is billed once. */
export function toUsage(counters: Counters): Usage | undefined {
  if (typeof counters.input_tokens !== 'number' && typeof counters.output_tokens !== 'number') return undefined;
  const written = count(counters.cache_creation_input_tokens);
  const read = count(counters.cache_read_input_tokens);
  const prompt = count(counters.input_tokens) + written + read;
  const completion = count(counters.output_tokens);
  const details = isRecord(counters.output_tokens_details) ? counters.output_tokens_details : {};
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    completion_tokens_details: { reasoning_tokens: count(details.thinking_tokens) },
  };
}

const TIERS: Readonly<Record<string, string>> = { standard: 'default', priority: 'priority', batch: 'flex' };

/** OpenAI's word for the tier that served the request. */
export function toServiceTier(counters: Counters): { service_tier?: string } {
  const tier = typeof counters.service_tier === 'string' ? TIERS[counters.service_tier] : undefined;
  return tier ? { service_tier: tier } : {};
}

/** `called`: tool calls stand in the answer; whatever the reason says, a finished answer with calls asks for them to be run. */
export function mapFinish(stopReason: string, called: boolean): FinishReason {
  const reason = ANTHROPIC_FINISH[stopReason] ?? 'stop';
  if (reason === 'stop' && called) return 'tool_calls';
  return reason === 'tool_calls' && !called ? 'stop' : reason;
}
