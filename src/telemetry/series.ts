import type { Counter, Gauge, Histogram } from '../contracts/telemetry.ts';

/** More label tuples than this are a mistake somewhere: what comes later is counted under `other`, so that memory and scrapes stay bounded. */
const MAX_SERIES = 10_000;

/** One metric with its series, in Prometheus' text format. */
export interface Family {
  text(): string;
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
  readonly #head: string;
  readonly #name: string;
  readonly #series: Series<ValueCell>;

  constructor(name: string, help: string, labels: readonly string[]) {
    this.#name = name;
    this.#head = head(name, help, 'counter');
    this.#series = new Series(labels, toValueCell);
  }
  inc(labels: Readonly<Record<string, string>>, value = 1): void {
    if (value >= 0) this.#series.of(labels).value += value;
  }
  text(): string {
    return valuesText(this.#head, this.#name, this.#series.all());
  }
}

export class GaugeFamily implements Family, Gauge {
  readonly #head: string;
  readonly #name: string;
  readonly #series: Series<ValueCell>;

  constructor(name: string, help: string, labels: readonly string[]) {
    this.#name = name;
    this.#head = head(name, help, 'gauge');
    this.#series = new Series(labels, toValueCell);
  }
  set(labels: Readonly<Record<string, string>>, value: number): void {
    this.#series.of(labels).value = value;
  }
  text(): string {
    return valuesText(this.#head, this.#name, this.#series.all());
  }
}

interface BucketCell {
  readonly labels: string;
  readonly counts: Float64Array;
  sum: number;
}

export class HistogramFamily implements Family, Histogram {
  readonly #head: string;
  readonly #name: string;
  readonly #bounds: readonly number[];
  readonly #series: Series<BucketCell>;

  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[]) {
    this.#name = name;
    this.#head = head(name, help, 'histogram');
    this.#bounds = bounds;
    this.#series = new Series(labels, (text) => ({ labels: text, counts: new Float64Array(bounds.length + 1), sum: 0 }));
  }
  observe(labels: Readonly<Record<string, string>>, value: number): void {
    const cell = this.#series.of(labels);
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    cell.counts[at] = (cell.counts[at] as number) + 1;
    cell.sum += value;
  }
  text(): string {
    const lines = [this.#head];
    for (const { labels, counts, sum } of this.#series.all()) {
      const more = labels === '' ? '' : `${labels},`;
      const own = labels === '' ? '' : `{${labels}}`;
      let total = 0;
      for (const [at, bound] of this.#bounds.entries()) {
        total += counts[at] as number;
        lines.push(`${this.#name}_bucket{${more}le="${bound}"} ${total}`);
      }
      total += counts[this.#bounds.length] as number;
      lines.push(`${this.#name}_bucket{${more}le="+Inf"} ${total}`, `${this.#name}_sum${own} ${sum}`, `${this.#name}_count${own} ${total}`);
    }
    return lines.join('\n');
  }
}

function head(name: string, help: string, type: string): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}`;
}

function valuesText(first: string, name: string, cells: readonly ValueCell[]): string {
  const lines = [first];
  for (const { labels, value } of cells) lines.push(labels === '' ? `${name} ${value}` : `${name}{${labels}} ${value}`);
  return lines.join('\n');
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
