import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { Reason } from './retry-policy.ts';
import type { Failed } from './upstream-try.ts';

/** An upstream that was not called, and why. */
export interface PassedOver {
  model: string;
  upstream: string;
  reason: Reason;
  /** Milliseconds until it may be called again. */
  waitMs?: number | undefined;
  /** What it cannot do. */
  missing?: string | undefined;
}

/** What one model call has met so far, over all models of its fallback chain. */
export class RequestLog {
  /** performance.now() */
  readonly startedAt = performance.now();
  /** Upstream calls of the request before this model call (earlier rounds of tools). */
  readonly earlierCalls: number;
  readonly failed: Failed[] = [];
  readonly passed: PassedOver[] = [];
  /** Tokens of the largest window that was too small. */
  #overflowed = 0;

  constructor(earlierCalls: number) {
    this.earlierCalls = earlierCalls;
  }

  add(failure: Failed): void {
    this.failed.push(failure);
    if (failure.verdict.reason === 'context_overflow') this.#overflowed = Math.max(this.#overflowed, failure.target.contextWindow ?? 0);
  }

  /** Only a larger or unstated window is worth a try after an overflow. */
  isLargeEnough(target: UpstreamTarget): boolean {
    return target.contextWindow === undefined || target.contextWindow > this.#overflowed;
  }
}
