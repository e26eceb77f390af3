import { createRequire } from 'node:module';
import { type LoggerOptions, pino } from 'pino';
import type pretty from 'pino-pretty';
import type { Log } from '../contracts/telemetry.ts';

/** Members that may hold a credential, wherever a log line carries an object. */
const SECRETS = new Set(['authorization', 'api_key', 'apikey', 'api-key', 'x-api-key', 'cookie', 'set-cookie', 'password', 'secret', 'token']);
const CENSORED = '[redacted]';
const MAX_DEPTH = 4;
/** A reader of standard output that has stopped reading costs lines, not memory. */
const MAX_WAITING_BYTES = 16 * 1024 ** 2;

/**
 * JSON lines on standard output; pretty in a terminal. `level`: pino's names. Lines are written in the background, and what
 * waits is written out when the process ends (a line that was on its way then may come after it).
 */
export function createLog(level: string, stream: NodeJS.WriteStream & { fd: 1 | 2 } = process.stdout): Log {
  const options: LoggerOptions = { level, base: { pid: process.pid }, formatters: { log: withoutSecrets }, serializers: { err: serializeError } };
  return stream.isTTY
    ? pino(options, toPretty()({ colorize: true, translateTime: 'HH:MM:ss.l', ignore: 'pid', destination: stream }))
    : pino(options, pino.destination({ fd: stream.fd, sync: false, maxLength: MAX_WAITING_BYTES }));
}

/** Loaded where there is a terminal: a service's start need not wait for it. */
function toPretty(): typeof pretty {
  return createRequire(import.meta.url)('pino-pretty') as typeof pretty;
}

/**
 * Nothing secret is handed to a log; this is for the day somebody does. pino's own `redact` rewrites every line: measured, it
 * costs some 3 % of a busy gateway.
 */
export function withoutSecrets(fields: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let clean: Record<string, unknown> | undefined;
  for (const name in fields) {
    const value = fields[name];
    if (value === null || value === undefined) continue;
    let better: unknown = value;
    if (typeof value === 'string') {
      if (SECRETS.has(name) || SECRETS.has(name.toLowerCase())) better = CENSORED;
    } else if (typeof value === 'object' && depth < MAX_DEPTH && !(value instanceof Error)) {
      better = Array.isArray(value) ? cleanList(value, depth + 1) : withoutSecrets(value as Record<string, unknown>, depth + 1);
    }
    if (better !== value) {
      clean ??= { ...fields };
      clean[name] = better;
    }
  }
  return clean ?? fields;
}

function cleanList(list: readonly unknown[], depth: number): readonly unknown[] {
  const cleaned = list.map((item) => (typeof item === 'object' && item !== null ? withoutSecrets(item as Record<string, unknown>, depth) : item));
  return cleaned.some((item, at) => item !== list[at]) ? cleaned : list;
}

/** Errors with their causes, but never more than a stack: errors of HTTP clients carry whole requests. */
function serializeError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown;
  const code = 'code' in thrown && typeof thrown.code === 'string' ? { code: thrown.code } : {};
  return {
    type: thrown.name,
    message: thrown.message,
    ...code,
    stack: thrown.stack,
    ...(thrown.cause === undefined ? {} : { cause: serializeError(thrown.cause) }),
  };
}
