import { hash, timingSafeEqual } from 'node:crypto';
import type { Config, KeyConfig } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Principal } from '../contracts/exchange.ts';

interface KnownKey {
  digest: Buffer;
  principal: Principal;
  /** Unix milliseconds; Infinity without an end. */
  expiresAt: number;
}

const MOST_HASHED = 1000;

/** A configuration's keys as digests. */
export class KeyRing {
  readonly #keys: readonly KnownKey[];
  /** Digests of keys that were right, by the key as it came: to hash one anew costs more than all comparisons. Who reads this memory reads requests, too. */
  readonly #hashed = new Map<string, Buffer>();

  constructor(config: Config) {
    this.#keys = config.auth.keys.flatMap((key) => {
      const digest = toDigest(key, config);
      return digest ? [{ digest, principal: toPrincipal(key), expiresAt: key.expires ? Date.parse(key.expires) : Number.POSITIVE_INFINITY }] : [];
    });
  }

  /** Every key is compared, in constant time: neither the time nor the message tells how near a guess came. */
  find(key: string, now: number): Principal {
    const hashed = this.#hashed.get(key);
    const digest = hashed ?? sha256(key);
    let found: KnownKey | undefined;
    for (const known of this.#keys) if (timingSafeEqual(known.digest, digest)) found ??= known;
    if (found === undefined)
      throw new HermesError('invalid_api_key', 'Incorrect API key provided. Send one of the keys that hermes is configured with as "Authorization: Bearer …".');
    if (hashed === undefined) this.#keep(key, digest);
    if (found.expiresAt <= now) throw new HermesError('invalid_api_key', 'This API key has expired. Ask for a new one.');
    return found.principal;
  }

  #keep(key: string, digest: Buffer): void {
    if (this.#hashed.size >= MOST_HASHED) this.#hashed.clear();
    this.#hashed.set(key, digest);
  }
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

function toDigest(key: KeyConfig, config: Config): Buffer | undefined {
  if (key.sha256) return Buffer.from(key.sha256, 'hex');
  const secret = key.key_env ? config.secrets.get(key.key_env) : undefined;
  return secret ? sha256(secret) : undefined;
}

export function toPrincipal(key: KeyConfig): Principal {
  return {
    id: key.id,
    service: key.service,
    services: key.services,
    project: key.project,
    projects: key.projects,
    admin: key.admin,
    models: key.models,
    tools: key.tools,
    userLevels: key.user_levels,
    priorities: key.priorities,
    passthrough: key.passthrough,
  };
}
