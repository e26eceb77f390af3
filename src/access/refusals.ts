import { isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { HermesError } from '../contracts/errors.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';

export type RefusalKind = 'missing' | 'key' | 'signature';
/** Whose request was refused: for the log. */
export interface RefusedRequest {
  remoteAddress?: string | undefined;
  requestId?: string | undefined;
}

/** Refusals that an address may collect at once, and that are forgotten in a minute: beyond it is 429, and no more lines in the log. */
const BURST = 300;
const PER_MINUTE = 300;
/** Addresses that are remembered; the least recently refused are forgotten. */
const MOST_ADDRESSES = 10_000;

interface Address {
  refusals: number;
  at: number;
  /** Not logged since the last line. */
  suppressed: number;
}

/**
 * Audits refused credentials: one log line and a metric each. An address that collects too many gets 429 for further wrong ones; a
 * right one is always let in, since many callers may share an address.
 */
export class Refusals {
  readonly #log: Log;
  readonly #environment: Environment;
  readonly #counter;
  readonly #addresses = new LRUCache<string, Address>({ max: MOST_ADDRESSES });

  constructor({ log, metrics, environment }: { log: Log; metrics: Metrics; environment: Environment }) {
    this.#log = log;
    this.#environment = environment;
    this.#counter = metrics.counter('hermes_auth_failures_total', 'Requests refused for their credential.', ['kind']);
  }

  /** What the caller is told: the refusal itself, or that it has been refused too often. */
  audit(kind: RefusalKind, refusal: unknown, { remoteAddress = '', requestId }: RefusedRequest): unknown {
    this.#counter.inc({ kind });
    const now = this.#environment.now();
    const known = this.#noted(networkOf(remoteAddress), now);
    if (known.refusals > BURST) {
      known.suppressed += 1;
      const waitMs = Math.ceil(((known.refusals - BURST) * 60_000) / PER_MINUTE);
      return new HermesError('rate_limit_exceeded', 'Too many credentials from this address were wrong; check the key, and try again later.', {
        headers: { 'retry-after': String(Math.ceil(waitMs / 1000)), 'retry-after-ms': String(waitMs) },
      });
    }
    const { suppressed } = known;
    known.suppressed = 0;
    const code = refusal instanceof HermesError ? refusal.code : 'internal_error';
    this.#log.warn(
      { request_id: requestId, kind, code, address: remoteAddress, ...(suppressed > 0 ? { suppressed } : {}) },
      known.refusals === BURST ? 'a credential was refused; more from this address are not logged for now' : 'a credential was refused',
    );
    return refusal;
  }

  #noted(network: string, now: number): Address {
    const known = this.#addresses.get(network) ?? { refusals: 0, at: now, suppressed: 0 };
    const forgotten = (Math.max(0, now - known.at) * PER_MINUTE) / 60_000;
    // What is refused beyond the burst does not prolong it: the wait that was told is true.
    known.refusals = Math.min(BURST + 1, Math.max(0, known.refusals - forgotten) + 1);
    known.at = now;
    this.#addresses.set(network, known);
    return known;
  }
}

/** One caller has a whole /64 of IPv6 addresses. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.replace(/%.*$/, '').split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array<string>(zeros).fill('0'), ...right]
    .slice(0, 4)
    .map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
    .join(':');
}
