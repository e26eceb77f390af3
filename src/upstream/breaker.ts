export type BreakerState = 'closed' | 'open' | 'half_open' | 'set_aside' | 'drained';

/** What a call holds while it runs: 0 for an ordinary one, the probe's number for the one that tests a cooled-down upstream. */
export type Permit = number;

/**
 * A circuit breaker over one upstream (address, name and key). Times are Unix milliseconds and handed in.
 * Every `begin` is followed by exactly one of `succeed`, `fail` and `release`; a probe's slot has a lease besides, so that
 * no lost call can keep a healed upstream shut.
 */
export class Breaker {
  failures = 0;
  /** 0: closed. In the past: half open, one probe may go. */
  openUntil = 0;
  /** After a 429: for as long as it asked. */
  asideUntil = 0;
  drained = false;
  #probe: Permit = 0;
  #probeLease = 0;
  #probes = 0;

  state(now: number): BreakerState {
    if (this.drained) return 'drained';
    if (this.openUntil > now) return 'open';
    if (this.asideUntil > now) return 'set_aside';
    return this.openUntil === 0 ? 'closed' : 'half_open';
  }

  /** May a call begin now? */
  available(now: number): boolean {
    if (this.drained || this.asideUntil > now) return false;
    if (this.openUntil === 0) return true;
    return this.openUntil <= now && !this.#probing(now);
  }

  /** Only after `available`. */
  begin(now: number, leaseMs: number): Permit {
    if (this.openUntil === 0) return 0;
    this.#probes++;
    this.#probe = this.#probes;
    this.#probeLease = now + leaseMs;
    return this.#probe;
  }

  /**
   * A probe's stream has brought content: others may call again. The count stays where it was until a call has ended well,
   * so that an upstream which cuts every stream half-way opens again at once.
   */
  trust(permit: Permit): void {
    if (!this.#owns(permit)) return;
    this.#probe = 0;
    this.openUntil = 0;
  }

  /** What began before the breaker opened says nothing about the upstream's health since. */
  succeed(permit: Permit): void {
    if (this.#owns(permit)) {
      this.#probe = 0;
      this.openUntil = 0;
    }
    if (this.openUntil === 0) this.failures = 0;
  }

  /** Tells whether this opened it. */
  fail(permit: Permit, now: number, threshold: number, cooldownMs: number): boolean {
    const probe = this.#owns(permit);
    if (probe) this.#probe = 0;
    else if (this.openUntil !== 0) return false;
    this.failures++;
    if (!probe && this.failures < threshold) return false;
    this.openUntil = now + cooldownMs;
    return true;
  }

  /** Neither good nor bad: the client left, the account was refused, the request itself was at fault. */
  release(permit: Permit): void {
    if (this.#owns(permit)) this.#probe = 0;
  }

  setAside(until: number): void {
    this.asideUntil = Math.max(this.asideUntil, until);
  }

  reset(): void {
    this.failures = 0;
    this.openUntil = 0;
    this.asideUntil = 0;
    this.drained = false;
    this.#probe = 0;
  }

  #owns(permit: Permit): boolean {
    return permit !== 0 && permit === this.#probe;
  }

  #probing(now: number): boolean {
    return this.#probe !== 0 && this.#probeLease > now;
  }
}
