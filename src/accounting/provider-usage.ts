import { isRecord } from '../wire/json.ts';

/** One line of what a provider says that it has counted. */
export interface UsageLine {
  /** UTC. */
  day: string | undefined;
  /** The provider's name for it. */
  model: string;
  requests: number | undefined;
  /** Includes the cached ones. */
  input: number;
  cached: number | undefined;
  output: number;
}

/** Names that exports of OpenAI and Anthropic, and plain tables, have for a field; the first that is there counts. */
const NAMES = {
  model: ['model', 'model_version', 'model_name', 'snapshot_id', 'line_item'],
  day: ['date', 'day', 'usage_date_utc', 'usage_date', 'start_time_iso', 'starting_at', 'start_time', 'aggregation_timestamp', 'timestamp'],
  requests: ['num_model_requests', 'n_requests', 'requests', 'calls', 'request_count'],
  input: ['input_tokens', 'prompt_tokens', 'n_context_tokens_total', 'usage_input_tokens'],
  uncached: ['uncached_input_tokens', 'usage_input_tokens_no_cache'],
  cached: ['input_cached_tokens', 'cached_tokens', 'cached_input_tokens', 'cache_read_input_tokens', 'usage_input_tokens_cache_read'],
  output: ['output_tokens', 'completion_tokens', 'n_generated_tokens_total', 'usage_output_tokens'],
} as const;
/** Cache writes: Anthropic tells them apart from the input. */
const CACHE_WRITES = [
  'cache_creation_input_tokens',
  'ephemeral_1h_input_tokens',
  'ephemeral_5m_input_tokens',
  'usage_input_tokens_cache_write_5m',
  'usage_input_tokens_cache_write_1h',
  'cache_write_tokens',
];

/**
 * An exported usage file: CSV with a header, JSON (a list, or pages with `data` and `results` as the usage APIs give them) or
 * NDJSON. Throws an Error that says what is missing.
 */
export function parseProviderUsage(text: string): UsageLine[] {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  const records = /^[[{]/.test(trimmed) ? jsonRecords(trimmed) : csvRecords(trimmed);
  const lines = records.flatMap(toLine);
  if (lines.length === 0) throw new Error('no usage in it: a line needs a model and its input_tokens and output_tokens');
  return lines;
}

type Fields = Record<string, unknown>;

function jsonRecords(text: string): Fields[] {
  try {
    return flatten(JSON.parse(text), {});
  } catch {
    return text
      .split(/\r?\n/)
      .filter((line) => line.trim() !== '')
      .flatMap((line) => flatten(JSON.parse(line), {}));
  }
}

/** Buckets hold the time, their results the counts: the outer fields count for what is inside. */
function flatten(value: unknown, outer: Fields): Fields[] {
  if (Array.isArray(value)) return value.flatMap((entry) => flatten(entry, outer));
  if (!isRecord(value)) return [];
  const { data, results, cache_creation, ...own } = value;
  const fields = { ...outer, ...own, ...(isRecord(cache_creation) ? cache_creation : {}) };
  const inner = data ?? results;
  return inner === undefined ? [fields] : flatten(inner, fields);
}

function csvRecords(text: string): Fields[] {
  const [header = [], ...rows] = parseCsv(text);
  const names = header.map((name) => name.trim().toLowerCase());
  return rows.map((cells) => Object.fromEntries(names.map((name, index) => [name, cells[index] ?? ''])));
}

/** RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)?.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === '') break;
    if (end !== ',') rows.push([]);
  }
  return rows.filter((row) => row.some((cell) => cell !== ''));
}

function toLine(fields: Fields): UsageLine[] {
  const model = first(fields, NAMES.model);
  const output = toCount(first(fields, NAMES.output));
  const uncached = toCount(first(fields, NAMES.uncached));
  const cached = toCount(first(fields, NAMES.cached));
  const whole = toCount(first(fields, NAMES.input));
  const writes = CACHE_WRITES.reduce((sum, name) => sum + (toCount(fields[name]) ?? 0), 0);
  const input = uncached === undefined ? whole : uncached + (cached ?? 0) + writes;
  if (typeof model !== 'string' || model === '' || input === undefined || output === undefined) return [];
  return [{ day: toUtcDay(first(fields, NAMES.day)), model, requests: toCount(first(fields, NAMES.requests)), input, cached, output }];
}

function first(fields: Fields, names: readonly string[]): unknown {
  return names.map((name) => fields[name]).find((value) => value !== undefined && value !== null && value !== '');
}

function toCount(value: unknown): number | undefined {
  const count = typeof value === 'string' ? Number(value.replaceAll(/[,\s]/g, '')) : value;
  return typeof count === 'number' && Number.isFinite(count) && value !== '' ? count : undefined;
}

/** Dates, ISO times, or Unix seconds. */
function toUtcDay(value: unknown): string | undefined {
  const seconds = typeof value === 'number' || (typeof value === 'string' && /^\d{9,}$/.test(value)) ? Number(value) : undefined;
  const at = seconds === undefined ? Date.parse(String(value ?? '')) : seconds * 1000;
  return Number.isNaN(at) ? undefined : new Date(at).toISOString().slice(0, 10);
}
