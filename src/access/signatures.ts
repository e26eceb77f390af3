import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Config } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Credential, Principal } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import { DEFAULT_PASSTHROUGH } from './passthrough-paths.ts';

export interface SignedRequest {
  method: string;
  path: string;
  body: Uint8Array | undefined;
}

type Signed = Extract<Credential, { kind: 'signature' }>;

const UNSIGNED = 'UNSIGNED-PAYLOAD';

function refuse(message: string): never {
  throw new HermesError('invalid_signature', message);
}

/**
 * HMAC-SHA256 over `timestamp.nonce.METHOD.path.sha256hex(body)`. A nonce is burned only by a request whose signature is
 * right: else anybody could burn them for others.
 */
export async function verifySignature(config: Config, signed: Signed, request: SignedRequest, hot: HotStore, nowMs: number): Promise<Principal> {
  const entry = config.auth.signatures.find(({ service }) => service === signed.service);
  const secret = entry ? config.secrets.get(entry.secret_env) : undefined;
  if (!entry || !secret) refuse('The signature is not right: check x-hermes-service, the secret and what is signed.');
  if (!/^\d{1,12}$/.test(signed.timestamp)) refuse('x-hermes-timestamp must be the time in Unix seconds.');
  if (signed.nonce === '' || signed.nonce.length > 128) refuse('x-hermes-nonce must be 1 to 128 characters, new with every request.');
  const expected = createHmac('sha256', secret)
    .update([signed.timestamp, signed.nonce, request.method, request.path, bodyDigest(signed, request)].join('.'))
    .digest();
  const given = Buffer.from(/^v1=([0-9a-f]{64})$/i.exec(signed.signature)?.[1] ?? '', 'hex');
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    refuse('The signature is not right: check x-hermes-service, the secret and what is signed.');
  const skewMs = entry.max_skew_seconds * 1000;
  if (Math.abs(nowMs - Number(signed.timestamp) * 1000) > skewMs)
    refuse(`x-hermes-timestamp is more than ${entry.max_skew_seconds} seconds away from the clock here.`);
  const fresh = await hot.set(`nonce:${entry.service}:${signed.nonce}`, '1', skewMs * 2 + 1000, true);
  if (!fresh) refuse('x-hermes-nonce has been used before; a repeat needs a new one and a new signature.');
  return {
    id: `signature:${entry.service}`,
    service: entry.service,
    services: [entry.service],
    project: entry.project,
    projects: [entry.project],
    admin: false,
    models: entry.models,
    tools: entry.tools,
    userLevels: ['*'],
    priorities: ['*'],
    passthrough: DEFAULT_PASSTHROUGH,
  };
}

/** Pass-through bodies are not buffered: there, and only there, the payload may be left unsigned or its digest be told. */
function bodyDigest(signed: Signed, request: SignedRequest): string {
  if (request.body !== undefined) return createHash('sha256').update(request.body).digest('hex');
  if (signed.contentSha256 !== UNSIGNED) refuse(`On this path sign with x-hermes-content-sha256: ${UNSIGNED}; the body is not read here.`);
  return UNSIGNED;
}
