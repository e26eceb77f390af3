import type { ToolSummary } from '../contracts/config.ts';
import { isRecord, parseJson, stringifyJson } from '../wire/json.ts';

/** `keep_last`: arrays keep this many of their last elements. */
export type SummaryRule = ToolSummary;
export type CountText = (text: string) => number | Promise<number>;

/** Ever tighter: how long a string, how many elements and members, how deep. */
const STEPS: readonly { chars: number; share: number; members: number; depth: number }[] = [
  { chars: Number.POSITIVE_INFINITY, share: 1, members: Number.POSITIVE_INFINITY, depth: Number.POSITIVE_INFINITY },
  { chars: 2000, share: 1, members: Number.POSITIVE_INFINITY, depth: Number.POSITIVE_INFINITY },
  { chars: 600, share: 1, members: Number.POSITIVE_INFINITY, depth: Number.POSITIVE_INFINITY },
  { chars: 200, share: 1, members: 60, depth: 12 },
  { chars: 100, share: 0.5, members: 30, depth: 6 },
  { chars: 60, share: 0, members: 12, depth: 3 },
  { chars: 30, share: 0, members: 8, depth: 3 },
  { chars: 20, share: 0, members: 6, depth: 2 },
  { chars: 10, share: 0, members: 4, depth: 1 },
];
/** In no text is a token longer on average, but for runs of one character: beyond it nothing need be counted. */
const CHARS_A_TOKEN = 16;
/** The first character of what stands for an integer beyond 2^53 (`wire/json`): such a string is never cut. */
const LONG_INTEGER = 1;

/** A tool's result within `rule.max_tokens`. Valid JSON stays valid JSON; what went is said where it stood. The same text when it fits. */
export async function summarise(text: string, rule: SummaryRule, count: CountText): Promise<string> {
  const fits = async (candidate: string): Promise<boolean> => {
    if (Buffer.byteLength(candidate) <= rule.max_tokens) return true;
    return candidate.length <= rule.max_tokens * CHARS_A_TOKEN && (await count(candidate)) <= rule.max_tokens;
  };
  if (await fits(text)) return text;
  const whole = toJson(text);
  const value = rule.fields ? (select(whole, new Set(rule.fields)) ?? whole) : whole;
  if (value !== whole) {
    const selected = stringifyJson(value);
    if (await fits(selected)) return selected;
  }
  if (value !== undefined) {
    for (const step of STEPS) {
      const reduced = stringifyJson(reduce(value, { ...step, keepLast: Math.max(step.share === 0 ? 1 : 0, Math.ceil(rule.keep_last * step.share)) }, 0));
      if (await fits(reduced)) return reduced;
    }
  }
  for (let chars = Math.min(text.length, rule.max_tokens * 4); chars > 8; chars = Math.floor(chars / 2)) {
    const short = headAndTail(text, chars);
    const candidate = value === undefined ? short : JSON.stringify(short);
    if (await fits(candidate)) return candidate;
  }
  return value === undefined ? marker(text.length) : JSON.stringify(marker(text.length));
}

function toJson(text: string): unknown {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[' && first !== '"') return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Only the members of these names, wherever they stand; undefined when there is none. What went is said where it stood. */
function select(value: unknown, fields: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) {
    const kept = value.flatMap((item: unknown) => select(item, fields) ?? []);
    return kept.length > 0 ? kept : undefined;
  }
  if (!isRecord(value)) return undefined;
  const entries = Object.entries(value);
  const kept = entries.flatMap(([key, member]): [string, unknown][] => {
    const inner = fields.has(key) ? member : select(member, fields);
    return inner === undefined ? [] : [[key, inner]];
  });
  if (kept.length === 0) return undefined;
  if (entries.length > kept.length) kept.push(['…', `[${entries.length - kept.length} more members omitted]`]);
  return Object.fromEntries(kept);
}

interface Bounds {
  chars: number;
  keepLast: number;
  members: number;
  depth: number;
}

function reduce(value: unknown, bounds: Bounds, depth: number): unknown {
  if (typeof value === 'string') return value.charCodeAt(0) === LONG_INTEGER ? value : shortened(value, bounds.chars);
  if (Array.isArray(value)) {
    if (depth >= bounds.depth) return `[${value.length} items omitted]`;
    const kept = value.slice(Math.max(0, value.length - bounds.keepLast)).map((item) => reduce(item, bounds, depth + 1));
    const gone = value.length - kept.length;
    return gone === 0 ? kept : [`[${gone} earlier ${gone === 1 ? 'item' : 'items'} omitted]`, ...kept];
  }
  if (!isRecord(value)) return value;
  const entries = Object.entries(value);
  if (depth >= bounds.depth) return `[${entries.length} members omitted]`;
  const kept: [string, unknown][] = entries.slice(0, bounds.members).map(([key, member]) => [key, reduce(member, bounds, depth + 1)]);
  if (entries.length > kept.length) kept.push(['…', `[${entries.length - kept.length} more members omitted]`]);
  return Object.fromEntries(kept);
}

/** Not where saying that something went takes more than what went. */
function shortened(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const short = headAndTail(text, chars);
  return short.length < text.length ? short : text;
}

export function headAndTail(text: string, chars: number): string {
  const head = Math.ceil(chars * 0.6);
  const tail = chars - head;
  let start = head;
  let end = text.length - tail;
  // Never half a surrogate pair.
  if (isHalf(text.charCodeAt(start - 1), 0xd800)) start -= 1;
  if (isHalf(text.charCodeAt(end), 0xdc00)) end += 1;
  return `${text.slice(0, start)} ${marker(end - start)} ${text.slice(end)}`;
}

function isHalf(code: number, from: number): boolean {
  return code >= from && code <= from + 0x3ff;
}

function marker(chars: number): string {
  return `…[${chars} characters omitted]…`;
}
