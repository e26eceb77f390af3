import type { MetricsFormat } from '../contracts/telemetry.ts';

interface Sample {
  value: number;
  /** ` # {…} value time`, as it stands. */
  exemplar: string;
}
/** One metric with its series as they stand in OpenMetrics, name and labels to value. */
interface Family {
  type: string;
  /** Escaped as in OpenMetrics. */
  help: string;
  samples: Map<string, Sample>;
}
export type MetricsText = Map<string, Family>;

/** What processes say of themselves that does not add up. What is not here is summed: requests in flight, memory, open files. */
const GAUGES: readonly [name: RegExp, join: (a: number, b: number) => number][] = [
  [/^hermes_upstream_state$|^nodejs_eventloop_lag_(?!min_)/, Math.max],
  [/^hermes_store_up$|^nodejs_eventloop_lag_min_|^process_start_time_seconds$|^process_max_fds$/, Math.min],
];
/** Each worker knows its own newest requests: the share of all is the mean. */
const MEANS = /^hermes_route_default_share$/;

/** Name and labels (values may hold anything, escaped), value, exemplar. */
const SAMPLE = /^([a-zA-Z_:][\w:]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?) (\S+)( # .*)?$/;

/** OpenMetrics of hermes and prom-client: no time stamps but those of exemplars. */
export function parseMetrics(text: string): MetricsText {
  const families: MetricsText = new Map();
  let help = '';
  let family: Family | undefined;
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) help = line.slice(line.indexOf(' ', '# HELP '.length) + 1);
    else if (line.startsWith('# TYPE ')) {
      const [, , name = '', type = 'unknown'] = line.split(' ');
      family = { type, help, samples: new Map() };
      families.set(name, family);
    } else {
      const [, series, value = '', exemplar = ''] = SAMPLE.exec(line) ?? [];
      if (series !== undefined) family?.samples.set(series, { value: toNumber(value), exemplar });
    }
  }
  return families;
}

/** The metrics of several processes as those of one. */
export function mergeMetrics(texts: readonly MetricsText[]): MetricsText {
  const merged: MetricsText = new Map();
  for (const text of texts) {
    for (const [name, { type, help, samples }] of text) {
      const known = merged.get(name) ?? { type, help, samples: new Map<string, Sample>() };
      merged.set(name, known);
      const join = joinOf(name, type);
      for (const [series, sample] of samples) {
        const before = known.samples.get(series);
        known.samples.set(series, before ? { value: joinKnown(before.value, sample.value, join), exemplar: newer(before.exemplar, sample.exemplar) } : sample);
      }
    }
  }
  for (const [name, { samples }] of merged) {
    if (!MEANS.test(name)) continue;
    for (const [series, { value, exemplar }] of samples) samples.set(series, { value: value / tellers(texts, name, series), exemplar });
  }
  return merged;
}

/** What goes on counting when its process is gone: a total that fell would look to Prometheus like a restart of all. */
export function countsOf(text: MetricsText): MetricsText {
  return new Map([...text].filter(([, { type }]) => type === 'counter' || type === 'histogram'));
}

export function toMetricsText(families: MetricsText, format: MetricsFormat): string {
  const blocks = [...families].map(([name, family]) => (format === 'text' ? plainBlock(name, family) : openBlock(name, family)));
  return format === 'text' ? `${blocks.join('\n\n')}\n` : `${blocks.join('\n')}\n# EOF\n`;
}

function openBlock(name: string, { type, help, samples }: Family): string {
  const lines = [...samples].map(([series, { value, exemplar }]) => `${series} ${toText(value)}${exemplar}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join('\n');
}

/** As hermes writes it when it is one process: a counter's family has its samples' name, whole bounds are no floats, and nobody knows exemplars. */
function plainBlock(name: string, { type, help, samples }: Family): string {
  const named = type === 'counter' && !samples.has(name) ? `${name}_total` : name;
  const lines = [...samples].map(([series, { value }]) => `${type === 'histogram' ? series.replace(/(le="\d+)\.0"\}$/, '$1"}') : series} ${toText(value)}`);
  return [`# HELP ${named} ${help.replaceAll('\\"', '"')}`, `# TYPE ${named} ${type}`, ...lines].join('\n');
}

function joinKnown(before: number, value: number, join: (a: number, b: number) => number): number {
  if (Number.isNaN(before)) return value;
  return Number.isNaN(value) ? before : join(before, value);
}
function newer(a: string, b: string): string {
  const at = (exemplar: string): number => Number(exemplar.slice(exemplar.lastIndexOf(' ') + 1));
  return b !== '' && (a === '' || at(b) > at(a)) ? b : a;
}
function joinOf(name: string, type: string): (a: number, b: number) => number {
  const add = (a: number, b: number): number => a + b;
  return type === 'gauge' ? (GAUGES.find(([pattern]) => pattern.test(name))?.[1] ?? add) : add;
}
function tellers(texts: readonly MetricsText[], name: string, series: string): number {
  return texts.filter((text) => text.get(name)?.samples.has(series)).length;
}
function toNumber(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}
function toText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : Number.isNaN(value) ? 'Nan' : String(value);
}
