import type { IncomingMessage } from 'node:http';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import { toHeaderText } from './header-text.ts';

/** Never forwarded: hop-by-hop (RFC 9110, 7.6.1), the caller's credentials and account, what proxies added, and hermes' own. */
const DROPPED = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'openai-organization',
  'openai-project',
  'forwarded',
  'via',
  'x-real-ip',
  'x-request-id',
]);
const DROPPED_PREFIXES = ['x-forwarded-', 'x-hermes-'];
/** Hop-by-hop for a response, and the id that is ours to give. */
const DROPPED_FROM_RESPONSE = ['connection', 'keep-alive', 'proxy-authenticate', 'trailer', 'x-request-id', 'set-cookie'];
const BROWSER_KEY = /^openai-insecure-api-key\.(.+)$/;

/** What `Connection` names belongs to this hop alone. */
function namedIn(connection: string | undefined): string[] {
  return (connection ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

/** Takes out of an upstream's answer what is not for the caller. */
export function cleanResponse(incoming: IncomingMessage): void {
  for (const name of namedIn(incoming.headers.connection)) delete incoming.headers[name];
  for (const name of DROPPED_FROM_RESPONSE) delete incoming.headers[name];
  // An upstream that is a hermes, too: what this one says of itself stands in them.
  for (const name of Object.keys(incoming.headers)) if (name.startsWith('x-hermes-')) delete incoming.headers[name];
}

/** What hermes says of a call that it passes on; there is one try. */
export function callHeaders(target: UpstreamTarget): Record<string, string> {
  return { 'x-hermes-route': 'passthrough', 'x-hermes-upstream': toHeaderText(target.id), 'x-hermes-attempts': '1' };
}

/** The request's own headers are what the proxy forwards: what must not pass is taken out of them. */
export function replaceHeaders(request: IncomingMessage, target: UpstreamTarget, buffered: Buffer | undefined, websocket = false): void {
  const { headers } = request;
  const dropped = new Set([...DROPPED, ...namedIn(headers.connection)]);
  for (const name of Object.keys(headers)) {
    const keep = websocket && (name === 'connection' || name === 'upgrade');
    if (!keep && (dropped.has(name) || DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix)))) delete headers[name];
  }
  if (websocket && typeof headers['sec-websocket-protocol'] === 'string') {
    const kept = headers['sec-websocket-protocol']
      .split(',')
      .map((part) => part.trim())
      .filter((part) => !BROWSER_KEY.test(part));
    if (kept.length > 0) headers['sec-websocket-protocol'] = kept.join(', ');
    else delete headers['sec-websocket-protocol'];
  }
  Object.assign(headers, target.headers);
  if (target.apiKey !== undefined) {
    if (target.provider === 'anthropic') headers['x-api-key'] = target.apiKey;
    else headers.authorization = `Bearer ${target.apiKey}`;
  }
  if (buffered !== undefined) {
    headers['content-length'] = String(buffered.length);
    delete headers['transfer-encoding'];
  }
}

/** Browsers cannot set headers on a websocket; OpenAI's clients put the key into the subprotocol. */
export function withBrowserKey(request: IncomingMessage): IncomingMessage {
  const offered = request.headers['sec-websocket-protocol'];
  if (request.headers.authorization !== undefined || typeof offered !== 'string') return request;
  for (const part of offered.split(',')) {
    const key = BROWSER_KEY.exec(part.trim())?.[1];
    if (key) request.headers.authorization = `Bearer ${key}`;
  }
  return request;
}
