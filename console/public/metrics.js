import { getText } from './api.js';

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:\\.|[^"\\])*)"/g;

/** Prometheus' text as samples by metric name. */
export function parseMetrics(text) {
  const samples = new Map();
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const [, name, labelText = '', value] = found;
    const labels = {};
    for (const [, label, escaped] of labelText.matchAll(LABEL)) labels[label] = escaped.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char));
    const list = samples.get(name) ?? [];
    list.push({ labels, value: Number(value) });
    samples.set(name, list);
  }
  return samples;
}

export async function readMetrics() {
  return { at: Date.now(), samples: parseMetrics(await getText('/admin/metrics')) };
}

export function sum({ samples }, name, where = () => true) {
  return (samples.get(name) ?? []).reduce((total, { labels, value }) => (where(labels) ? total + value : total), 0);
}

/** Sums by one label, largest first. */
export function sumBy({ samples }, name, label) {
  const sums = new Map();
  for (const { labels, value } of samples.get(name) ?? []) sums.set(labels[label] ?? '', (sums.get(labels[label] ?? '') ?? 0) + value);
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** Growth a second between two readings. */
export function rate(later, earlier, name, where) {
  const seconds = (later.at - earlier.at) / 1000;
  return seconds > 0 ? Math.max(0, sum(later, name, where) - sum(earlier, name, where)) / seconds : 0;
}

/** A quantile of what a histogram took in between two readings (all of it without an earlier one), in its unit. */
export function quantile(later, earlier, name, q) {
  const counts = new Map();
  const add = (reading, sign) => {
    for (const { labels, value } of reading?.samples.get(`${name}_bucket`) ?? []) counts.set(labels.le, (counts.get(labels.le) ?? 0) + sign * value);
  };
  add(later, 1);
  add(earlier, -1);
  const buckets = [...counts].map(([le, count]) => [le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), count]).sort((a, b) => a[0] - b[0]);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return Number.NaN;
  let [below, lower] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= q * total) {
      if (bound === Number.POSITIVE_INFINITY) return lower;
      return lower + ((bound - lower) * (q * total - below)) / Math.max(1e-9, count - below);
    }
    [below, lower] = [count, bound];
  }
  return lower;
}
