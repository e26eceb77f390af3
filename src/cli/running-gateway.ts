import { createConfigReader } from '../app/read-config.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';

export interface GatewayOptions {
  config?: string;
  /** Of a running gateway; default: the configuration's own address. */
  url?: string;
}

/** Nothing answers there. */
export class NoGateway extends Error {}

/** Asks a running gateway as an operator, with `ADMIN_API_KEY`, else `API_KEY`. Throws CommandFailed with what it answered. */
export async function askGateway(options: GatewayOptions, method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
  const base = options.url?.replace(/\/+$/, '') ?? (await addressOf(options.config));
  const key = process.env.ADMIN_API_KEY || process.env.API_KEY;
  if (!key) throw new NoGateway('Set ADMIN_API_KEY (or API_KEY) to a key of the running gateway that is admin.');
  let response: Response;
  try {
    response = await fetch(`${base}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw new NoGateway(`No gateway answers at ${base}; name one by --url.`, { cause });
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok) return answer;
  const error = isRecord(answer) && isRecord(answer.error) ? answer.error.message : undefined;
  throw new CommandFailed(`The gateway at ${base} answered ${response.status}: ${typeof error === 'string' ? error : 'no reason given'}`);
}

async function addressOf(file: string | undefined): Promise<string> {
  const { server } = (await createConfigReader({ file })).read().config;
  const host = server.host === '0.0.0.0' || server.host === '::' ? '127.0.0.1' : server.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`;
}
