import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Credential, Principal } from '../contracts/exchange.ts';
import type { Nonces } from './nonces.ts';
import { DEFAULT_PASSTHROUGH } from './passthrough-paths.ts';

export interface SignedRequest {
  method: string;
  /** With its query, as it came. */
  path: string;
  /** Undefined: not read here. */
  body: Uint8Array | undefined;
  /** There is no body that could be read. */
  bodiless?: boolean | undefined;
}

type Signed = Extract<Credential, { kind: 'signature' }>;

const UNSIGNED = 'UNSIGNED-PAYLOAD';
const NO_BODY = new Uint8Array();
const WRONG = 'The signature is not right: check x-hermes-service, the secret and what is signed.';
/** A service that is not known is checked against a secret, too: the time it takes does not tell the names of the known ones. */
const NOBODYS_SECRET = randomBytes(32);

function refuse(message: string): never {
  throw new HermesError('invalid_signature', message);
}

/**
 * HMAC-SHA256 over `timestamp.nonce.METHOD.path.sha256hex(body)`. A nonce is burned only by a request whose signature is
 * right: else anybody could burn them for others.
 */
export async function verifySignature(config: Config, signed: Signed, request: SignedRequest, nonces: Nonces, nowMs: number): Promise<Principal> {
  const entry = config.auth.signatures.find(({ service }) => service === signed.service);
  const secret = entry && config.secrets.get(entry.secret_env);
  if (!/^\d{1,12}$/.test(signed.timestamp)) refuse('x-hermes-timestamp must be the time in Unix seconds.');
  if (signed.nonce === '' || signed.nonce.length > 128) refuse('x-hermes-nonce must be 1 to 128 characters, new with every request.');
  const expected = createHmac('sha256', secret ?? NOBODYS_SECRET)
    .update([signed.timestamp, signed.nonce, request.method, request.path, bodyDigest(signed, request)].join('.'))
    .digest();
  const given = Buffer.from(/^v1=([0-9a-f]{64})$/i.exec(signed.signature)?.[1] ?? '', 'hex');
  const right = given.length === expected.length && timingSafeEqual(given, expected);
  if (!right || entry === undefined || secret === undefined) refuse(WRONG);
  const skewMs = entry.max_skew_seconds * 1000;
  if (Math.abs(nowMs - Number(signed.timestamp) * 1000) > skewMs)
    refuse(`x-hermes-timestamp is more than ${entry.max_skew_seconds} seconds away from the clock here.`);
  // A timestamp from the future is good for twice the skew.
  const fresh = await nonces.burn(entry.service, signed.nonce, skewMs * 2 + 1000);
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

/** Bodies that are passed through are not read: there, and only there, the payload may be left unsigned. */
function bodyDigest(signed: Signed, { body, bodiless }: SignedRequest): string {
  if (body === undefined && signed.contentSha256 === UNSIGNED) return UNSIGNED;
  const known = body ?? (bodiless ? NO_BODY : undefined);
  if (known === undefined) refuse(`On this path sign with x-hermes-content-sha256: ${UNSIGNED}; the body is not read here.`);
  return createHash('sha256').update(known).digest('hex');
}
