import type { Config } from '../contracts/config.ts';
import { type Environment, variable } from './environment.ts';
import { type ConfigProblem, didYouMean } from './problems.ts';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
type LogLevel = (typeof LOG_LEVELS)[number];
export interface Overrides {
  port: number | undefined;
  host: string | undefined;
  level: LogLevel | undefined;
  proxy: Config['proxy'];
}

/** `LOG_LEVEL`, when it is one. */
function levelOf(env: Environment): LogLevel | undefined {
  const asked = variable(env, 'LOG_LEVEL')?.toLowerCase();
  return LOG_LEVELS.find((level) => level === asked);
}

/** `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`, in either case as everywhere; undefined: calls go straight. */
function readProxy(env: Environment, problem: (file: string, path: string, message: string) => void): Config['proxy'] {
  const read = (name: string): string | undefined => variable(env, name.toLowerCase()) ?? variable(env, name);
  const address = (name: string): string | undefined => {
    const value = read(name);
    if (value === undefined || /^https?:\/\/[^\s/]+\/?$/.test(value)) return value;
    problem('environment', name, 'must be an address of a proxy: http://host:port');
    return undefined;
  };
  const [http, https] = [address('HTTP_PROXY'), address('HTTPS_PROXY')];
  return http === undefined && https === undefined ? undefined : { http, https, no: read('NO_PROXY') };
}

/** Flags beat environment beats file. */
export function readOverrides(
  flags: { port?: string | number | undefined; host?: string | undefined } | undefined,
  env: Environment,
  wrong: (problem: ConfigProblem) => void,
): Overrides {
  const problem = (file: string, path: string, message: string) => wrong({ file, line: 0, column: 0, path, message });
  const flag = flags?.port;
  const text = flag === undefined ? variable(env, 'PORT') : String(flag).trim();
  const isPort = text !== undefined && /^\d+$/.test(text) && Number(text) <= 65_535;
  if (text !== undefined && !isPort)
    problem(flag === undefined ? 'environment' : 'flags', flag === undefined ? 'PORT' : '--port', 'must be a port: a number from 0 to 65535');
  const level = levelOf(env);
  const asked = variable(env, 'LOG_LEVEL');
  if (asked !== undefined && level === undefined)
    problem('environment', 'LOG_LEVEL', `must be one of ${LOG_LEVELS.join(', ')}${didYouMean(asked, LOG_LEVELS)}`);
  return { port: isPort ? Number(text) : undefined, host: flags?.host ?? variable(env, 'HOST'), level, proxy: readProxy(env, problem) };
}
