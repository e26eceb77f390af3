import { createConfigReader } from '../app/read-config.ts';
import { processEnvironment } from '../config/load.ts';
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
  const text = await askGatewayText(options, path, method, body);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The same, as the text that it answered. */
export async function askGatewayText(options: GatewayOptions, path: string, method = 'GET', body?: unknown): Promise<string> {
  const base = options.url?.replace(/\/+$/, '') ?? (await addressOf(options.config));
  const { ADMIN_API_KEY, API_KEY } = processEnvironment();
  const key = ADMIN_API_KEY || API_KEY;
  if (!key) throw new NoGateway('Set ADMIN_API_KEY (or API_KEY) to a key of the running gateway that is admin.');
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${base}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    text = await response.text();
  } catch (cause) {
    throw new NoGateway(`No gateway answers at ${base}; name one by --url.`, { cause });
  }
  if (response.ok) return text;
  throw new CommandFailed(`The gateway at ${base} answered ${response.status}: ${reasonIn(text) ?? 'no reason given'}`);
}

function reasonIn(text: string): string | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    const message = isRecord(answer) && isRecord(answer.error) ? answer.error.message : undefined;
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

async function addressOf(file: string | undefined): Promise<string> {
  const { server } = (await createConfigReader({ file })).read().config;
  const host = server.host === '0.0.0.0' || server.host === '::' ? '127.0.0.1' : server.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`;
}
