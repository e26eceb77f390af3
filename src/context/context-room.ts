import type { ColdStore } from '../contracts/cold-store.ts';
import type { ContextRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { createCounter } from './counter.ts';
import { scaled, scaleOf } from './encoding.ts';
import { type FitParts, Fitting } from './fit.ts';
import { MessageCounts } from './message-counts.ts';
import { Recaps } from './recaps.ts';
import { ToolResults } from './tool-results.ts';

export interface ContextDeps {
  cold: ColdStore;
  environment: Environment;
  log: Log;
  metrics: Metrics;
}

/** Counts, trims and summarises. `close` ends the counting thread. */
export function createContextRoom({ cold, environment, log, metrics }: ContextDeps): ContextRoom & { close(): Promise<void> } {
  const counter = createCounter(log);
  const counts = new MessageCounts(counter);
  const recaps = new Recaps({ cold, environment, log });
  const parts: FitParts = { counter, counts, results: new ToolResults(), recaps };
  const trimmed = metrics.counter('hermes_trimmed_messages_total', 'Messages of histories that were left out to fit a target');

  return {
    async fit(exchange, request, target) {
      const result = await new Fitting(parts, exchange, request, target).run();
      if (result.dropped > 0) trimmed.inc({}, result.dropped);
      return result;
    },
    countMessage(message, modelName) {
      return counts.exactly(message, scaleOf(modelName));
    },
    countStored: (message) => counts.countStored(message),
    async countText(text, modelName) {
      const scale = scaleOf(modelName);
      return scaled(await counter.count(scale.encoding, [text]), scale);
    },
    recap: (exchange, left, ask) => recaps.renew(exchange, left, ask),
    close: () => counter.close(),
  };
}
