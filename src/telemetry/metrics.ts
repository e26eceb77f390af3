import { collectDefaultMetrics, Counter as PromCounter, Gauge as PromGauge, Histogram as PromHistogram, Registry } from 'prom-client';
import type { Counter, Gauge, Histogram, Metrics } from '../contracts/telemetry.ts';

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

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of UNCLEAN) registry.removeSingleMetric(name);
  const made = new Map<string, Counter | Gauge | Histogram>();
  const once = <T extends Counter | Gauge | Histogram>(name: string, make: () => T): T => {
    const known = made.get(name);
    if (known) return known as T;
    const metric = make();
    made.set(name, metric);
    return metric;
  };
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: (name, help, labels = []) =>
      once<Counter>(name, () => {
        const metric = new PromCounter({ name, help, labelNames: [...labels], registers: [registry] });
        return { inc: (values, value = 1) => metric.inc(values, value) };
      }),
    gauge: (name, help, labels = []) =>
      once<Gauge>(name, () => {
        const metric = new PromGauge({ name, help, labelNames: [...labels], registers: [registry] });
        return { set: (values, value) => metric.set(values, value) };
      }),
    histogram: (name, help, labels = [], buckets = LATENCY_BUCKETS) =>
      once<Histogram>(name, () => {
        const metric = new PromHistogram({ name, help, labelNames: [...labels], buckets: [...buckets], registers: [registry] });
        return { observe: (values, seconds) => metric.observe(values, seconds) };
      }),
  };
}
