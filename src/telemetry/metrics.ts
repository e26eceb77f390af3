import type { Metrics, MetricsFormat } from '../contracts/telemetry.ts';
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

export const CONTENT_TYPES: Readonly<Record<MetricsFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};
/** A start must not wait for what nobody has asked for yet. */
const LOAD_AFTER_MS = 1000;

/**
 * The gateway's metrics. Those of the process and of Node (memory, garbage collection, event-loop delay) are prom-client's;
 * hermes' own are counted by `series.ts`, since prom-client builds a hash of all labels at every single count.
 */
export function createMetrics(now: () => number = Date.now): Metrics {
  let loading: Promise<{ metrics(): Promise<string> }> | undefined;
  const ofProcess = (): Promise<{ metrics(): Promise<string> }> => {
    loading ??= loadProcessMetrics();
    return loading;
  };
  setTimeout(() => void ofProcess(), LOAD_AFTER_MS).unref();
  const families = new Map<string, Family>();
  const once = <T extends Family>(name: string, help: string, labels: readonly string[], kind: abstract new (...args: never[]) => T, make: () => T): T => {
    checkNames(name, help, labels);
    const known = families.get(name);
    if (known instanceof kind) return known;
    if (known !== undefined) throw new Error(`the metric ${name} is of another type already`);
    const family = make();
    families.set(name, family);
    return family;
  };
  return {
    contentType: CONTENT_TYPES.text,
    async text(format = 'text') {
      const process = await (await ofProcess()).metrics();
      const own = [...families.values()].map((family) => family.text(format));
      return format === 'text' ? `${own.join('\n\n')}\n\n${process}` : `${own.join('\n')}\n${toOpenMetrics(process)}# EOF\n`;
    },
    counter: (name, help, labels = []) => once(name, help, labels, CounterFamily, () => new CounterFamily(name, help, labels)),
    gauge: (name, help, labels = []) => once(name, help, labels, GaugeFamily, () => new GaugeFamily(name, help, labels)),
    histogram: (name, help, labels = [], buckets = LATENCY_BUCKETS) =>
      once(name, help, labels, HistogramFamily, () => new HistogramFamily(name, help, labels, buckets, now)),
  };
}

/** One bad name, and Prometheus takes nothing of the whole page. Source: Prometheus, "Data model". */
function checkNames(name: string, help: string, labels: readonly string[]): void {
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`a metric's name has letters, digits, _ and : alone, not "${name}"`);
  const wrong = labels.find((label) => !/^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/.test(label));
  if (wrong !== undefined) throw new Error(`the metric ${name} has the label "${wrong}": letters, digits and _ alone are allowed`);
  if (help.trim() === '') throw new Error(`the metric ${name} needs a help text`);
}

async function loadProcessMetrics(): Promise<{ metrics(): Promise<string> }> {
  const { collectDefaultMetrics, Registry } = await import('prom-client');
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of UNCLEAN) registry.removeSingleMetric(name);
  return registry;
}

/** Prometheus' text as OpenMetrics has it: no empty lines, and a counter's family is named without its suffix. */
function toOpenMetrics(text: string): string {
  const counters = new Set([...text.matchAll(/^# TYPE (\S+)_total counter$/gm)].map(([, family]) => family));
  return text
    .replaceAll(/^# (HELP|TYPE) (\S+)_total /gm, (line, kind: string, family: string) => (counters.has(family) ? `# ${kind} ${family} ` : line))
    .replaceAll(/\n{2,}/g, '\n');
}

/** What a scraper would rather have: OpenMetrics where it says so (Prometheus does), else Prometheus' plain text. */
export function formatFor(accept: string | undefined): MetricsFormat {
  const weights = { openmetrics: 0, text: 0 };
  for (const entry of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    const given = parameters.find((parameter) => parameter.startsWith('q='));
    const weight = given === undefined ? 1 : Number(given.slice(2)) || 0;
    if (type === 'application/openmetrics-text') weights.openmetrics = Math.max(weights.openmetrics, weight);
    if (type === 'text/plain') weights.text = Math.max(weights.text, weight);
  }
  return weights.openmetrics > 0 && weights.openmetrics >= weights.text ? 'openmetrics' : 'text';
}
