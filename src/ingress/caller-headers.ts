import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { CREDENTIAL_HEADERS } from '../access/credential.ts';

// Header values come as Latin-1; a session id in Chinese was sent as UTF-8.
const BEYOND_ASCII = /[\u0080-\u00ff]/;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** All headers, each once, lower case; values that are UTF-8 decoded as such. */
export function allHeaders(request: IncomingMessage): Record<string, string> {
  const incoming = request.headers;
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const name in incoming) {
    const value = incoming[name];
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (text !== undefined) headers[name] = BEYOND_ASCII.test(text) ? decode(text) : text;
  }
  return headers;
}

function decode(text: string): string {
  try {
    return UTF8.decode(Buffer.from(text, 'latin1'));
  } catch {
    return text;
  }
}

/** What the pipeline may see: takes the credentials out, in place. */
export function hideCredentials(headers: Record<string, string>): Record<string, string> {
  for (const name of CREDENTIAL_HEADERS) delete headers[name];
  return headers;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;
const MAX_NOTED = 256;

/** The caller's own `x-request-id`, for log and trace. */
export function callerRequestId({ 'x-request-id': given }: Readonly<Record<string, string | string[] | undefined>>): string | undefined {
  if (given === undefined) return undefined;
  const noted = [given]
    .flat()
    .join(', ')
    .slice(0, 4 * MAX_NOTED)
    .replaceAll(CONTROL, '')
    .trim()
    .slice(0, MAX_NOTED);
  return noted === '' ? undefined : noted;
}

/** The caller's address; `x-forwarded-for` counts only as far as trusted proxies wrote it. */
export function remoteAddress(request: IncomingMessage, trusted: readonly string[]): string {
  const direct = request.socket.remoteAddress ?? '';
  const forwarded = request.headers['x-forwarded-for'];
  if (trusted.length === 0 || typeof forwarded !== 'string') return direct;
  const list = toBlockList(trusted);
  const isTrusted = (address: string): boolean => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const chain = [...forwarded.split(',').map((part) => part.trim()), direct.replace(/^::ffff:/, '')];
  while (chain.length > 1 && isTrusted(chain.at(-1) ?? '')) chain.pop();
  return chain.at(-1) ?? direct;
}

function toBlockList(trusted: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of trusted) {
    const [address = '', bits] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (isIP(address) === 0) continue;
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}
