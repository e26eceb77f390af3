import { createHash, randomBytes } from 'node:crypto';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { KeyConfig } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Principal } from '../contracts/exchange.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { toPrincipal } from './keys.ts';
import { type StoredKey, toStored } from './stored-key.ts';

/** How old may be what an instance knows: a key that was revoked elsewhere is refused within it. */
const POLL_MS = 1000;
const PREFIX = 'key:';
/** Changes with every change of a key: all that is read while nothing changes. */
const VERSION = 'keys.version';
const MOST_KEYS = 100_000;
/** 256 bits: nobody guesses it, so its hash needs no salt and no stretching. */
const KEY_BYTES = 32;
/** Revoked keys stay listed for so long. */
const REVOKED_KEPT_MS = 90 * 86_400_000;

/** A key as operators see it. */
export type KeyView = Omit<StoredKey, 'sha256' | 'key_env'>;

export interface RunTimeKeysDeps {
  cold: Pick<ColdStore, 'getValue' | 'setValue' | 'listValues'>;
  environment: Environment;
  log: Log;
}

/** Keys that operators add and revoke while hermes runs, beside those of the configuration. They are in the cold store, for all instances. */
export class RunTimeKeys {
  readonly #deps: RunTimeKeysDeps;
  #byHash: ReadonlyMap<string, StoredKey> = new Map();
  #version: string | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #loaded = false;
  #checking: Promise<void> | undefined;

  constructor(deps: RunTimeKeysDeps) {
    this.#deps = deps;
  }

  /** Waits for the store once a second at most, whoever asks with whatever key. Undefined: no such key. Throws for one that has expired. */
  find(key: string): Principal | undefined | Promise<Principal | undefined> {
    const since = this.#deps.environment.now() - this.#checkedAt;
    // Below zero the clock was set back: a revoked key must not live on until it has caught up.
    if (since >= 0 && since < POLL_MS) return this.#known(key);
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking.then(() => this.#known(key));
  }

  /** What a key may do, by its id; undefined: there is none, or it was revoked. */
  async principalOf(id: string): Promise<Principal | undefined> {
    const stored = toStored(await this.#deps.cold.getValue(PREFIX + id));
    return stored === undefined || stored.revoked_at !== undefined ? undefined : toPrincipal(stored);
  }

  /** All of them, the newest last, revoked ones for a while. */
  async list(): Promise<KeyView[]> {
    return [...(await this.#read())].map(toView).sort((a, b) => a.created_at.localeCompare(b.created_at));
  }

  /** Makes the key itself: it is told this once, and nowhere kept. */
  async add(config: KeyConfig, by: string): Promise<{ key: string; view: KeyView }> {
    const key = `sk-hermes-${randomBytes(KEY_BYTES).toString('base64url')}`;
    const { key_env: _none, ...rest } = config;
    const stored: StoredKey = { ...rest, sha256: toHash(key), created_at: new Date(this.#deps.environment.now()).toISOString(), created_by: by };
    const name = PREFIX + config.id;
    const isNew = await this.#deps.cold.setValue(name, JSON.stringify(stored), undefined, true);
    if (!isNew) {
      const there = toStored(await this.#deps.cold.getValue(name));
      if (there && there.revoked_at === undefined)
        throw new HermesError('invalid_value', `There is a key called "${config.id}"; revoke it first, or take another id.`, { param: 'id' });
      await this.#deps.cold.setValue(name, JSON.stringify(stored), undefined);
    }
    await this.#changed();
    return { key, view: toView(stored) };
  }

  /** Undefined: there is none. */
  async revoke(id: string): Promise<KeyView | undefined> {
    const stored = toStored(await this.#deps.cold.getValue(PREFIX + id));
    if (stored === undefined || stored.revoked_at !== undefined) return undefined;
    const now = this.#deps.environment.now();
    const revoked: StoredKey = { ...stored, revoked_at: new Date(now).toISOString() };
    await this.#deps.cold.setValue(PREFIX + id, JSON.stringify(revoked), now + REVOKED_KEPT_MS);
    await this.#changed();
    return toView(revoked);
  }

  #known(key: string): Principal | undefined {
    // By the hash of the key: how long the look-up takes tells nothing of any key.
    const stored = this.#byHash.get(toHash(key));
    if (stored === undefined) return undefined;
    if (stored.expires !== undefined && Date.parse(stored.expires) <= this.#deps.environment.now())
      throw new HermesError('invalid_api_key', 'This API key has expired. Ask for a new one.');
    return toPrincipal(stored);
  }

  async #check(): Promise<void> {
    const now = this.#deps.environment.now();
    try {
      const version = await this.#deps.cold.getValue(VERSION);
      if (!this.#loaded || version !== this.#version) {
        const keys = (await this.#read()).filter(({ revoked_at }) => revoked_at === undefined);
        this.#byHash = new Map(keys.map((stored) => [stored.sha256, stored]));
        this.#version = version;
        this.#loaded = true;
      }
    } catch (err) {
      this.#deps.log.warn({ err }, 'keys that were added at run time could not be read; what is known of them holds');
      if (!this.#loaded) throw new HermesError('overloaded', 'Keys cannot be checked right now; try again.', { cause: err });
    }
    this.#checkedAt = now;
  }

  async #read(): Promise<StoredKey[]> {
    const values = await this.#deps.cold.listValues(PREFIX, MOST_KEYS);
    return values.flatMap(({ value }) => toStored(value) ?? []);
  }

  async #changed(): Promise<void> {
    await this.#deps.cold.setValue(VERSION, this.#deps.environment.uuid(), undefined);
    this.#checkedAt = Number.NEGATIVE_INFINITY;
  }
}

function toHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

function toView({ sha256: _hash, key_env: _env, ...view }: StoredKey): KeyView {
  return view;
}
