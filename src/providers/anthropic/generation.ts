/** A model's generation as major × 100 + minor (4.5 is 405); undefined for names that are not Anthropic's own scheme. */
export type Generation = number | undefined;

/** `claude-3-5-sonnet-20241022`, `claude-opus-4-1`, `anthropic.claude-sonnet-4-20250514-v1:0`, `claude-sonnet-5`; a date is no minor version. */
const NAME = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

export function generationOf(modelName: string): Generation {
  const match = NAME.exec(modelName);
  return match ? Number(match[1]) * 100 + Number(match[2] ?? 0) : undefined;
}

const since = (generation: Generation, first: number): boolean => generation !== undefined && generation >= first;

/** Opus 4.7 and later think adaptively and answer 400 to `budget_tokens`; 4.6 takes both. Source: Anthropic's extended thinking guide. */
export const thinksAdaptively = (generation: Generation): boolean => since(generation, 406);
/** Thinking began with Claude 3.7. Names of other makers are given the older, wider understood form. */
export const thinks = (generation: Generation): boolean => generation === undefined || generation >= 307;
/** Models after Opus 4.6 take only the default temperature, a `top_p` of at least 0.99 and no `top_k`. Source: the SDK's comments. */
export const fixedSampling = (generation: Generation): boolean => since(generation, 407);
/** From Opus 4.1 on, temperature and top_p together are a 400. */
export const oneSamplingParameter = (generation: Generation): boolean => since(generation, 401);
/** A conversation that ends with the assistant (prefill) is a 400 from 4.6 on. */
export const takesPrefill = (generation: Generation): boolean => generation === undefined || generation < 406;
/** `output_config.format` and strict tools. */
export const structuresOutput = (generation: Generation): boolean => generation === undefined || generation >= 401;

/** `max_tokens` is required: what is asked for when neither the caller nor the configuration says. */
export function defaultMaxTokens(generation: Generation): number {
  return generation !== undefined && generation < 305 ? 4096 : 8192;
}
