import type { Credential } from '../contracts/exchange.ts';

/** Headers that carry a caller's credential or identity; they stay at the door. */
export const CREDENTIAL_HEADERS: readonly string[] = [
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'x-hermes-signature',
  'x-hermes-nonce',
  'x-hermes-timestamp',
  'x-hermes-service',
  'x-hermes-content-sha256',
];

const BEARER = /^bearer\s+(\S.*)$/i;

/** What a request proves itself with: a signature when it carries one, else a key. Anthropic clients send `x-api-key`, Azure's `api-key`. */
export function readCredential(headers: Readonly<Record<string, string>>): Credential | undefined {
  const signature = headers['x-hermes-signature'];
  if (signature !== undefined) {
    const {
      'x-hermes-service': service = '',
      'x-hermes-timestamp': timestamp = '',
      'x-hermes-nonce': nonce = '',
      'x-hermes-content-sha256': contentSha256,
    } = headers;
    return { kind: 'signature', service, timestamp, nonce, signature, contentSha256 };
  }
  const bearer = headers.authorization?.match(BEARER)?.[1]?.trim();
  const key = bearer ?? headers['x-api-key'] ?? headers['api-key'];
  return key ? { kind: 'key', key } : undefined;
}
