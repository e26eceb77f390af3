import { isRecord } from '../../wire/json.ts';
import { type Generation, thinks, thinksAdaptively } from './generation.ts';

export interface ThinkingAsk {
  /** OpenAI's `reasoning_effort`. */
  effort: unknown;
  /** Anthropic's own `thinking`, when the caller sent one. */
  native: unknown;
}
export interface ThinkingBounds {
  generation: Generation;
  /** What the caller or the configuration says; undefined: nobody did. */
  maxTokens: number | undefined;
  defaultMaxTokens: number;
  ceiling: number | undefined;
  /** A forced tool and a history that lost its thinking rule thinking out: both are a 400. */
  possible: boolean;
}
export interface Thinking {
  thinking?: Record<string, unknown>;
  /** For `output_config.effort`. */
  effort?: string;
  maxTokens: number;
  active: boolean;
  dropped: string[];
}

/** The API's floor. */
const MIN_BUDGET = 1024;
const BUDGETS: Readonly<Record<string, number>> = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 24_576, max: 32_768 };
const EFFORTS: Readonly<Record<string, string>> = { minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'xhigh', max: 'max' };
/** Thinking counts into `max_tokens`: room for both where nobody bounds it. */
const ADAPTIVE_MAX_TOKENS = 32_000;

/** How much this model is to think, in the words of its generation. */
export function toThinking(ask: ThinkingAsk, bounds: ThinkingBounds): Thinking {
  const off = (dropped: string[], thinking?: Record<string, unknown>): Thinking => ({
    maxTokens: bounds.maxTokens ?? bounds.defaultMaxTokens,
    active: false,
    dropped,
    ...(thinking ? { thinking } : {}),
  });
  const native = isRecord(ask.native) && typeof ask.native.type === 'string' ? ask.native : undefined;
  const effort = typeof ask.effort === 'string' && ask.effort in EFFORTS ? ask.effort : undefined;
  const name = native ? 'thinking' : 'reasoning_effort';
  const unknown = typeof ask.effort === 'string' && ask.effort !== 'none' && !effort ? ['reasoning_effort'] : [];
  const adaptive = thinksAdaptively(bounds.generation);
  if (native?.type === 'disabled' || (!native && ask.effort === 'none')) return off([], native || adaptive ? { type: 'disabled' } : undefined);
  if (!native && !effort) return off(unknown);
  if (!bounds.possible || !thinks(bounds.generation)) return off([name]);
  if (adaptive) return adaptively(native, effort, bounds);
  return withBudget(native, effort, bounds) ?? off([name]);
}

function adaptively(native: Record<string, unknown> | undefined, effort: string | undefined, bounds: ThinkingBounds): Thinking {
  // 4.6 has no xhigh, and still takes a budget; later ones answer 400 to it.
  const keeps = native && (native.type !== 'enabled' || bounds.generation === 406);
  const level = effort && (effort === 'xhigh' && bounds.generation === 406 ? 'high' : EFFORTS[effort]);
  const budget = native?.type === 'enabled' && typeof native.budget_tokens === 'number' ? native.budget_tokens : undefined;
  const maxTokens = bounds.maxTokens ?? Math.min(bounds.ceiling ?? ADAPTIVE_MAX_TOKENS, ADAPTIVE_MAX_TOKENS);
  if (keeps && budget !== undefined && budget >= maxTokens)
    return { thinking: { type: 'adaptive' }, maxTokens, active: true, dropped: ['thinking.budget_tokens'] };
  return {
    thinking: keeps ? native : { type: 'adaptive', ...(native && 'display' in native ? { display: native.display } : {}) },
    ...(level ? { effort: level } : {}),
    maxTokens,
    active: true,
    dropped: native && !keeps && budget !== undefined ? ['thinking.budget_tokens'] : [],
  };
}

/** Older models: a budget of at least 1,024 tokens and less than `max_tokens`; undefined when there is no room for it. */
function withBudget(native: Record<string, unknown> | undefined, effort: string | undefined, bounds: ThinkingBounds): Thinking | undefined {
  const asked = typeof native?.budget_tokens === 'number' ? native.budget_tokens : (BUDGETS[effort ?? 'medium'] ?? MIN_BUDGET);
  const maxTokens = bounds.maxTokens ?? Math.min(bounds.ceiling ?? Number.POSITIVE_INFINITY, asked + bounds.defaultMaxTokens);
  if (maxTokens <= MIN_BUDGET) return undefined;
  // A quarter is left for the answer itself when the bound is tight.
  const fits = native?.type === 'enabled' && asked < maxTokens ? asked : Math.min(asked, Math.max(MIN_BUDGET, Math.floor(maxTokens * 0.75)));
  const budget = Math.max(MIN_BUDGET, Math.floor(fits));
  const display = native && 'display' in native ? { display: native.display } : {};
  return { thinking: { type: 'enabled', budget_tokens: budget, ...display }, maxTokens, active: true, dropped: [] };
}
