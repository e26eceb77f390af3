import type { Priority } from '../../contracts/config.ts';
import { HermesError } from '../../contracts/errors.ts';
import type { Ask } from '../../contracts/exchange.ts';

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

/** Takes hermes' extension fields out of the body and the `x-hermes-…` headers; the body wins. Throws a HermesError that names the field. */
export function liftAsk(body: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>>): Lifted {
  const fields: Record<string, unknown> = { ...body };
  const ask: Ask = {};
  let extended = false;
  const take = (name: string): unknown => {
    const own = fields[name];
    delete fields[name];
    const value = own ?? headers[`x-hermes-${name.replaceAll('_', '-')}`];
    if (value !== undefined && value !== null) extended = true;
    return value ?? undefined;
  };
  for (const [name, member] of Object.entries(STRINGS)) {
    const value = take(name);
    if (value !== undefined) ask[member as (typeof STRINGS)[keyof typeof STRINGS]] = toText(value, name);
  }
  const priority = take('priority');
  if (priority !== undefined) ask.priority = toPriority(priority);
  const timeout = take('timeout');
  if (timeout !== undefined) ask.timeoutMs = toTimeout(timeout);
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

function toText(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '') throw new HermesError('invalid_value', `'${name}' must be a non-empty string.`, { param: name });
  if (value.length > MAX_LENGTH || CONTROL.test(value))
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
