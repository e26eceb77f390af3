import type { Priority } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Ask } from '../contracts/exchange.ts';
import { isRecord } from './json.ts';

/** Fields whose value is a plain string: body name to member of `Ask`. */
const STRINGS = {
  session_id: 'sessionId',
  prefer_model: 'preferModel',
  user_level: 'userLevel',
  service_type: 'serviceType',
  project: 'project',
  request_id: 'requestId',
} as const;
const PRIORITIES: readonly string[] = ['urgent', 'normal', 'batch'] satisfies Priority[];
/** No control characters: these values go into headers, keys and logs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;
const MAX_LENGTH = 256;
const MAX_TIMEOUT_SECONDS = 86_400;

export interface Lifted {
  /** The body without hermes' fields. */
  fields: Record<string, unknown>;
  ask: Ask;
  /** A field of hermes' own was used. */
  extended: boolean;
}

/** With the header that says the same. */
const STRING_FIELDS = (Object.keys(STRINGS) as (keyof typeof STRINGS)[]).map((name) => ({
  name,
  header: `x-hermes-${name.replaceAll('_', '-')}`,
  member: STRINGS[name],
}));
/** Hermes' own names in a body. */
const OWN: ReadonlySet<string> = new Set([...Object.keys(STRINGS), 'priority', 'timeout']);

/** Takes hermes' extension fields out of the body and the `x-hermes-…` headers; the body wins. Throws a HermesError that names the field. */
export function liftAsk(body: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>>): Lifted {
  const fields = withoutOwn(body);
  const ask: Ask = {};
  let extended = false;
  for (const { name, header, member } of STRING_FIELDS) {
    const value = body[name] ?? headers[header];
    if (value === undefined || value === null) continue;
    ask[member] = toText(value, name);
    extended = true;
  }
  const priority = body.priority ?? headers['x-hermes-priority'];
  if (priority !== undefined && priority !== null) {
    ask.priority = toPriority(priority);
    extended = true;
  }
  const timeout = body.timeout ?? headers['x-hermes-timeout'];
  if (timeout !== undefined && timeout !== null) {
    ask.timeoutMs = toTimeout(timeout);
    extended = true;
  }
  const named = takeToolNames(fields, headers);
  if (named) {
    ask.tools = named;
    extended = true;
  }
  if (ask.requestId === undefined) {
    const key = headers['idempotency-key'];
    if (key) ask.requestId = toText(key, 'Idempotency-Key');
  }
  return { fields, ask, extended };
}

/** A copy of the body with the others' fields in their order. Copied, not deleted from: deleting makes every later look-up slow. */
function withoutOwn(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(body)) {
    if (OWN.has(name)) continue;
    // A member of that name is data like any other; an assignment would change what the object inherits.
    if (name === '__proto__') Object.defineProperty(fields, name, { value: body[name], enumerable: true, configurable: true, writable: true });
    else fields[name] = body[name];
  }
  return fields;
}

/** The caller's name for a request that is refused, as far as it can be read: never throws. */
export function requestIdOf(body: unknown, headers: Readonly<Record<string, string>>): string | undefined {
  const given = (isRecord(body) ? body.request_id : undefined) ?? headers['x-hermes-request-id'] ?? headers['idempotency-key'];
  try {
    return given === undefined ? undefined : toText(given, 'request_id');
  } catch {
    return undefined;
  }
}

function toText(value: unknown, name: string): string {
  if (typeof value !== 'string' || value.trim() === '') throw new HermesError('invalid_value', `'${name}' must be a non-empty string.`, { param: name });
  // Code points, as people count; they are only counted where there may be too many.
  if ((value.length > MAX_LENGTH && [...value].length > MAX_LENGTH) || CONTROL.test(value))
    throw new HermesError('invalid_value', `'${name}' must be at most ${MAX_LENGTH} characters, none of them control characters.`, { param: name });
  return value;
}

function toPriority(value: unknown): Priority {
  if (typeof value !== 'string' || !PRIORITIES.includes(value))
    throw new HermesError('invalid_value', `'priority' must be one of ${PRIORITIES.join(', ')}.`, { param: 'priority' });
  return value as Priority;
}

function toTimeout(value: unknown): number {
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof seconds !== 'number' || !(seconds > 0))
    throw new HermesError('invalid_value', "'timeout' must be a number of seconds greater than 0.", { param: 'timeout' });
  return Math.min(seconds, MAX_TIMEOUT_SECONDS) * 1000;
}

/** `tools` as a list of names is hermes' own field; names may also stand among function objects. */
function takeToolNames(fields: Record<string, unknown>, headers: Readonly<Record<string, string>>): string[] | undefined {
  const { tools } = fields;
  const header = headers['x-hermes-tools'];
  if (Array.isArray(tools) && tools.some((tool) => typeof tool === 'string')) {
    const names = tools.filter((tool): tool is string => typeof tool === 'string').map((tool) => toText(tool, 'tools'));
    const rest = tools.filter((tool) => typeof tool !== 'string');
    if (rest.length > 0) fields.tools = rest;
    else delete fields.tools;
    return names;
  }
  if (Array.isArray(tools) && tools.length === 0) {
    delete fields.tools;
    return header === undefined ? undefined : splitNames(header);
  }
  return header === undefined ? undefined : splitNames(header);
}

function splitNames(header: string): string[] {
  return header
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .map((name) => toText(name, 'x-hermes-tools'));
}
