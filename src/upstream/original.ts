import type { ModelEntry } from '../contracts/config.ts';
import type { Original } from '../contracts/exchange.ts';
import { toExhausted } from './exhausted.ts';
import { failureOf } from './failure.ts';
import { toShownMessage } from './refusal.ts';
import type { RequestLog } from './request-log.ts';

/** The first choice's own outcome, beside a degraded answer. */
export function toOriginal(model: ModelEntry, log: RequestLog): Original {
  const first = log.failed.find((failure) => failure.model === model.id);
  const said = first && failureOf(first.error);
  if (first && said) {
    const { type, code } = said;
    return {
      model: model.id,
      upstream: first.target.id,
      status: said.status,
      error: { message: toShownMessage(said.message), type, code },
      content: first.content,
    };
  }
  const error = first?.error ?? toExhausted(model.id, log);
  const upstream = first?.target.id ?? log.passed.find((entry) => entry.model === model.id)?.upstream ?? model.id;
  return {
    model: model.id,
    upstream,
    status: error.status,
    error: { message: error.message, type: error.type, code: error.wireCode },
    content: first?.content ?? null,
  };
}
