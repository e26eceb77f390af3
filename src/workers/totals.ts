import type { MetricsFormat } from '../contracts/telemetry.ts';
import { countsOf, type MetricsText, mergeMetrics, parseMetrics, toMetricsText } from './metrics-text.ts';

/** What all workers have counted, those that are gone too. */
export class Totals<Worker> {
  readonly #latest = new Map<Worker, MetricsText>();
  #gone: MetricsText = new Map();

  /** `text`: OpenMetrics. */
  note(worker: Worker, text: string): void {
    this.#latest.set(worker, parseMetrics(text));
  }

  /** What it said last counts on; what it is no longer (in flight, memory) does not. */
  leave(worker: Worker): void {
    const last = this.#latest.get(worker);
    this.#latest.delete(worker);
    if (last) this.#gone = mergeMetrics([this.#gone, countsOf(last)]);
  }

  /** With the primary's own (OpenMetrics). */
  text(own: string, format: MetricsFormat): string {
    return toMetricsText(mergeMetrics([...this.#latest.values(), this.#gone, parseMetrics(own)]), format);
  }
}
