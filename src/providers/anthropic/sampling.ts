import type { ChatRequest } from '../../wire/chat.ts';
import { fixedSampling, type Generation, oneSamplingParameter } from './generation.ts';

export interface SamplingOptions {
  generation: Generation;
  /** The API version 2026-10-21 knows none of the three. */
  accepted: boolean;
  thinking: boolean;
}
export interface Sampling {
  fields: { temperature?: number; top_p?: number; top_k?: number };
  /** Left out or clamped. */
  dropped: string[];
}

/** temperature, top_p and top_k as this model and API version take them. */
export function toSampling(request: ChatRequest, topK: unknown, { generation, accepted, thinking }: SamplingOptions): Sampling {
  const fields: Sampling['fields'] = {};
  const dropped: string[] = [];
  const fixed = fixedSampling(generation);
  const temperature = numberOf(request.temperature);
  const topP = numberOf(request.top_p);
  if (temperature !== undefined) {
    const clamped = Math.min(1, Math.max(0, temperature));
    if (accepted && !thinking && !fixed) fields.temperature = clamped;
    // 1 is the default: leaving it out says the same.
    if (temperature !== clamped || (fields.temperature === undefined && temperature !== 1)) dropped.push('temperature');
  }
  if (topP !== undefined && topP !== 1) {
    const bound = fixed ? 0.99 : thinking ? 0.95 : 0;
    const crowded = oneSamplingParameter(generation) && fields.temperature !== undefined && fields.temperature !== 1;
    const clamped = Math.min(1, Math.max(0, topP));
    if (accepted && clamped >= bound && !crowded) {
      fields.top_p = clamped;
      if (oneSamplingParameter(generation)) delete fields.temperature;
    }
    if (fields.top_p !== topP) dropped.push('top_p');
  }
  if (typeof topK === 'number') {
    if (accepted && !thinking && !fixed) fields.top_k = topK;
    else dropped.push('top_k');
  }
  return { fields, dropped };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
