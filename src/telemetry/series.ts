import type { Counter, ExemplarSource, Gauge, Histogram, MetricsFormat } from '../contracts/telemetry.ts';

/** More label tuples than this are a mistake somewhere: what comes later is counted under `other`, so that memory and scrapes stay bounded. */
const MAX_SERIES = 10_000;

/** One metric with its series, as Prometheus reads it. */
export interface Family {
  text(format: MetricsFormat): string;
}

/**
 * A value per label tuple, found by a tree of maps, one level a label: this is on every request's way, and a joined key would
 * have to be built and hashed anew each time, where label values have their hash already.
 */
class Series<Cell extends object> {
  readonly #names: readonly string[];
  readonly #make: (labels: string) => Cell;
  readonly #root: Tree<Cell> = new Map();
  readonly #cells: Cell[] = [];

  constructor(names: readonly string[], make: (labels: string) => Cell) {
    this.#names = names;
    this.#make = make;
    // Without labels there is a series from the start: an alert on its increase needs the first 0.
    if (names.length === 0) this.of({});
  }

  of(labels: Readonly<Record<string, string>>): Cell {
    const names = this.#names;
    let node: Tree<Cell> | Cell | undefined = this.#root;
    if (names.length === 0) return this.#cells[0] ?? this.#add(labels);
    for (let at = 0; at < names.length; at++) {
      node = (node as Tree<Cell>).get(labels[names[at] as string] ?? '');
      if (node === undefined) return this.#add(labels);
    }
    return node as Cell;
  }

  all(): readonly Cell[] {
    return this.#cells;
  }

  #add(labels: Readonly<Record<string, string>>): Cell {
    const values = this.#names.map((name) => labels[name] ?? '');
    if (this.#cells.length >= MAX_SERIES && values.some((value) => value !== 'other'))
      return this.of(Object.fromEntries(this.#names.map((name) => [name, 'other'])));
    const cell = this.#make(this.#names.map((name, at) => `${name}="${escapeValue(values[at] ?? '')}"`).join(','));
    this.#cells.push(cell);
    const last = values.pop();
    let node = this.#root;
    for (const value of values) {
      const known = node.get(value);
      const next: Tree<Cell> = known instanceof Map ? known : new Map();
      if (next !== known) node.set(value, next);
      node = next;
    }
    if (last !== undefined) node.set(last, cell);
    return cell;
  }
}
type Tree<Cell> = Map<string, Tree<Cell> | Cell>;

interface ValueCell {
  readonly labels: string;
  value: number;
}
const toValueCell = (labels: string): ValueCell => ({ labels, value: 0 });

export class CounterFamily implements Family, Counter {
  readonly #help: string;
  readonly #name: string;
  readonly #series: Series<ValueCell>;

  constructor(name: string, help: string, labels: readonly string[]) {
    this.#name = name;
    this.#help = help;
    this.#series = new Series(labels, toValueCell);
  }
  inc(labels: Readonly<Record<string, string>>, value = 1): void {
    if (value >= 0) this.#series.of(labels).value += value;
  }
  /** OpenMetrics: a counter's family is named without the suffix that each of its samples must have. */
  text(format: MetricsFormat): string {
    const family = this.#name.replace(/_total$/, '');
    const [named, sample] = format === 'text' ? [this.#name, this.#name] : [family, `${family}_total`];
    return valuesText(head(named, this.#help, 'counter', format), sample, this.#series.all());
  }
}

export class GaugeFamily implements Family, Gauge {
  readonly #help: string;
  readonly #name: string;
  readonly #series: Series<ValueCell>;

  constructor(name: string, help: string, labels: readonly string[]) {
    this.#name = name;
    this.#help = help;
    this.#series = new Series(labels, toValueCell);
  }
  set(labels: Readonly<Record<string, string>>, value: number): void {
    this.#series.of(labels).value = value;
  }
  text(format: MetricsFormat): string {
    return valuesText(head(this.#name, this.#help, 'gauge', format), this.#name, this.#series.all());
  }
}

interface BucketCell {
  readonly labels: string;
  readonly counts: Float64Array;
  sum: number;
  /** The scrape after which a bucket's exemplar was taken. */
  readonly taken: Uint32Array;
  /** By bucket, written out. */
  readonly exemplars: (string | undefined)[];
}

export class HistogramFamily implements Family, Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #now: () => number;
  readonly #series: Series<BucketCell>;
  /** Counts the scrapes that asked for exemplars: each bucket's first value after one is its next, and all others cost nothing. */
  #scrape = 1;

  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[], now: () => number) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#now = now;
    const size = bounds.length + 1;
    this.#series = new Series(labels, (text) => ({ labels: text, counts: new Float64Array(size), sum: 0, taken: new Uint32Array(size), exemplars: [] }));
  }
  observe(labels: Readonly<Record<string, string>>, value: number, source?: ExemplarSource): void {
    const cell = this.#series.of(labels);
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    cell.counts[at] = (cell.counts[at] as number) + 1;
    cell.sum += value;
    if (source === undefined || cell.taken[at] === this.#scrape) return;
    cell.taken[at] = this.#scrape;
    cell.exemplars[at] = exemplarText(source, value, this.#now());
  }
  text(format: MetricsFormat): string {
    const open = format === 'openmetrics';
    if (open) this.#scrape++;
    const lines = [head(this.#name, this.#help, 'histogram', format)];
    for (const { labels, counts, sum, exemplars } of this.#series.all()) {
      const more = labels === '' ? '' : `${labels},`;
      const own = labels === '' ? '' : `{${labels}}`;
      const exemplar = (at: number): string => (open ? (exemplars[at] ?? '') : '');
      let total = 0;
      for (const [at, bound] of this.#bounds.entries()) {
        total += counts[at] as number;
        lines.push(`${this.#name}_bucket{${more}le="${open ? toFloat(bound) : bound}"} ${total}${exemplar(at)}`);
      }
      total += counts[this.#bounds.length] as number;
      lines.push(`${this.#name}_bucket{${more}le="+Inf"} ${total}${exemplar(this.#bounds.length)}`);
      lines.push(`${this.#name}_sum${own} ${sum}`, `${this.#name}_count${own} ${total}`);
    }
    return lines.join('\n');
  }
}

/** OpenMetrics allows 128 characters of names and values. */
function exemplarText({ id, traceId }: ExemplarSource, value: number, now: number): string {
  const trace = traceId === undefined ? '' : `trace_id="${escapeValue(traceId)}",`;
  return ` # {${trace}x_request_id="${escapeValue(id)}"} ${value} ${(now / 1000).toFixed(3)}`;
}

/** OpenMetrics writes bounds as floats. */
function toFloat(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function head(name: string, help: string, type: string, format: MetricsFormat): string {
  const escaped = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return `# HELP ${name} ${format === 'text' ? escaped : escaped.replaceAll('"', '\\"')}\n# TYPE ${name} ${type}`;
}

function valuesText(first: string, name: string, cells: readonly ValueCell[]): string {
  const lines = [first];
  for (const { labels, value } of cells) lines.push(labels === '' ? `${name} ${value}` : `${name}{${labels}} ${value}`);
  return lines.join('\n');
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
