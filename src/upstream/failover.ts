import type { ModelEntry } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit, Exchange } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import type { OpenAttempt } from '../contracts/rooms.ts';
import { toExhausted } from './exhausted.ts';
import { fallbacks } from './fallbacks.ts';
import { ModelRun, type RunDeps } from './model-run.ts';
import { toOriginal } from './original.ts';
import { RequestLog } from './request-log.ts';
import type { Served } from './upstream-try.ts';

export interface Handed {
  open?: OpenAttempt | undefined;
}

/** The attempt loop: the routed model's upstreams, then those of its fallbacks. */
export async function failover(deps: RunDeps, exchange: Exchange, next: Next, handed?: Handed): Promise<Answer> {
  const primary = modelOf(exchange);
  const log = new RequestLog(exchange.callsBegun);
  for (const model of fallbacks(primary, exchange)) {
    const result = await new ModelRun(deps, exchange, next, model, log).run();
    if (result === undefined) {
      if (exchange.cancelled) return toFailed(exchange, log, exchange.cancelled);
      continue;
    }
    if ('error' in result) return toFailed(exchange, log, exchange.cancelled ?? result.error);
    if (model !== primary) {
      result.answer.facts.degraded = true;
      result.answer.facts.original = toOriginal(primary, log);
    }
    return hand(result, log, handed);
  }
  return toFailed(exchange, log, toExhausted(primary.id, log));
}

function modelOf({ config, route }: Exchange): ModelEntry {
  const model = route && (config.registry.models.get(route.model) ?? config.registry.find(route.model));
  if (model === undefined) throw new HermesError('model_not_found', `The model "${route?.model ?? ''}" is not in the registry.`);
  return model;
}

function hand({ answer, attempt }: Served, log: RequestLog, handed: Handed | undefined): Answer {
  const { facts } = answer;
  facts.model = attempt.model.id;
  facts.upstream = attempt.target.id;
  // Tries that came to nothing, and the pauses after them, were spent on upstreams.
  if (log.failed.length > 0) facts.waitedMs = (facts.waitedMs ?? 0) + attempt.begunAt - log.startedAt;
  if (!attempt.open) return answer;
  // Nobody will tell how the stream ends: its beginning has to do.
  if (handed === undefined) attempt.end({ status: 'complete' });
  else handed.open = attempt;
  return answer;
}

function toFailed(exchange: Exchange, log: RequestLog, error: HermesError): Answer {
  const attempts = exchange.callsBegun - log.earlierCalls;
  const last = log.failed.at(-1);
  const where = last ? { model: last.model, upstream: last.target.id, waitedMs: performance.now() - log.startedAt } : {};
  const init: AnswerInit = { error, facts: { model: exchange.route?.model, attempts, ...where } };
  exchange.answer = init;
  return exchange.answer as Answer;
}
