import { isRecord } from '../wire/json.ts';

/** How a text that was found is changed; the same text: it stays. `json`: it is JSON text. */
export type Change = (text: string, json: boolean) => string;

/** Members that name and pair things, or that hermes and the vendors put there: no words of anybody. */
const NAMES = new Set([
  'role',
  'type',
  'id',
  'tool_call_id',
  'tool_use_id',
  'name',
  'model',
  'signature',
  'encrypted_content',
  'encrypted_index',
  'media_type',
  'detail',
  'format',
]);
/** Is a member of this name no words of anybody? */
export function isName(key: string): boolean {
  return NAMES.has(key);
}
/** Files and images. */
const BASE64 = /^(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/_=\r\n-]{256,}$/;
/** An integer that was too long for a number when it was parsed: see wire/json.ts. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the mark begins with one
const LONG_INTEGER = /^\u0001[\w-]+:(-?\d+)$/;
const LEAST_NUMBER = 1e9;

/** Every text within a value, changed; the very same object where nothing changed. Thinking that is signed cannot be changed: a block of it in which something was found goes. */
export function changeTexts(value: unknown, change: Change, key = ''): unknown {
  if (typeof value === 'string') return NAMES.has(key) ? value : changeText(value, change, key === 'arguments' || key === 'partial_json');
  if (typeof value === 'number') return Math.abs(value) < LEAST_NUMBER ? value : changeNumber(value, String(value), change);
  if (Array.isArray(value)) return key === 'thinking_blocks' ? withoutChanged(value, change) : changeItems(value, change, key);
  return isRecord(value) ? changeMembers(value, change) : value;
}

function changeText(text: string, change: Change, json: boolean): string {
  if (text === '' || (text.length >= 256 && BASE64.test(text))) return text;
  const long = LONG_INTEGER.exec(text)?.[1];
  return long === undefined ? change(text, json) : String(changeNumber(text, long, change));
}

/** A number in which something was found becomes a text. */
function changeNumber<T>(value: T, digits: string, change: Change): T | string {
  const changed = change(digits, false);
  return changed === digits ? value : changed;
}

function changeItems(list: unknown[], change: Change, key: string): unknown[] {
  let changed = false;
  const out = list.map((item) => {
    const next = changeTexts(item, change, key);
    changed ||= next !== item;
    return next;
  });
  return changed ? out : list;
}

function changeMembers(record: Record<string, unknown>, change: Change): Record<string, unknown> {
  let out: Record<string, unknown> | undefined;
  for (const [key, member] of Object.entries(record)) {
    const next = changeTexts(member, change, key);
    if (next === member) continue;
    out ??= { ...record };
    out[key] = next;
  }
  return out ?? record;
}

function withoutChanged(blocks: unknown[], change: Change): unknown[] {
  const kept = blocks.filter((block) => changeTexts(block, change) === block);
  return kept.length === blocks.length ? blocks : kept;
}
