import type { Metrics } from '../contracts/telemetry.ts';
import { CounterFamily, type Family, GaugeFamily, HistogramFamily } from './series.ts';

/** Seconds; model answers take from tens of milliseconds to minutes. */
const LATENCY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300];

/** Default metrics whose names Prometheus' own linter refuses (`promtool check metrics`). */
const UNCLEAN = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_version_info',
  'nodejs_eventloop_lag_seconds',
];

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** A start must not wait for what nobody has asked for yet. */
const LOAD_AFTER_MS = 1000;

/**
 * The gateway's metrics. Those of the process and of Node (memory, garbage collection, event-loop delay) are prom-client's;
 * hermes' own are counted by `series.ts`, since prom-client builds a hash of all labels at every single count.
 */
export function createMetrics(): Metrics {
  let loading: Promise<{ metrics(): Promise<string> }> | undefined;
  const ofProcess = (): Promise<{ metrics(): Promise<string> }> => {
    loading ??= loadProcessMetrics();
    return loading;
  };
  setTimeout(() => void ofProcess(), LOAD_AFTER_MS).unref();
  const families = new Map<string, Family>();
  const once = <T extends Family>(name: string, kind: abstract new (...args: never[]) => T, make: () => T): T => {
    const known = families.get(name);
    if (known instanceof kind) return known;
    if (known !== undefined) throw new Error(`the metric ${name} is of another type already`);
    const family = make();
    families.set(name, family);
    return family;
  };
  return {
    contentType: CONTENT_TYPE,
    async text() {
      const process = await (await ofProcess()).metrics();
      const own = [...families.values()].map((family) => family.text());
      return `${own.join('\n\n')}\n\n${process}`;
    },
    counter: (name, help, labels = []) => once(name, CounterFamily, () => new CounterFamily(name, help, labels)),
    gauge: (name, help, labels = []) => once(name, GaugeFamily, () => new GaugeFamily(name, help, labels)),
    histogram: (name, help, labels = [], buckets = LATENCY_BUCKETS) => once(name, HistogramFamily, () => new HistogramFamily(name, help, labels, buckets)),
  };
}

async function loadProcessMetrics(): Promise<{ metrics(): Promise<string> }> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of UNCLEAN) registry.removeSingleMetric(name);
  return registry;
}
