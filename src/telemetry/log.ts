import { pino } from 'pino';
import pretty from 'pino-pretty';
import type { Log } from '../contracts/telemetry.ts';

/** Members that may hold a credential, wherever a log line carries an object. */
const SECRETS = ['authorization', 'api_key', 'apiKey', 'cookie', 'password', 'secret', 'x-api-key', 'api-key'];

/** JSON lines on standard output; pretty in a terminal. `level`: pino's names. */
export function createLog(level: string, stream: NodeJS.WriteStream & { fd: 1 | 2 } = process.stdout): Log {
  const options = {
    level,
    base: { pid: process.pid },
    redact: {
      paths: SECRETS.flatMap((name) => (name.includes('-') ? [`["${name}"]`, `*["${name}"]`] : [name, `*.${name}`, `*.*.${name}`])),
      censor: '[redacted]',
    },
    serializers: { err: serializeError },
  };
  return stream.isTTY
    ? pino(options, pretty({ colorize: true, translateTime: 'HH:MM:ss.l', ignore: 'pid', destination: stream }))
    : pino(options, pino.destination({ fd: stream.fd, sync: true }));
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
