import type { Exchange } from '../contracts/exchange.ts';
import { Roster } from '../wire/roster.ts';
import type { KeptRun } from './kept-run.ts';
import type { Outcome } from './outcome.ts';
import { askedSession, ownerOf } from './record-key.ts';

/** What two bodies of one request may differ by in length: `stream` and its options. */
const LENGTH_SLACK = 512;
const MOST_COMPARED = 64;
const MOST_UNDELIVERED = 1000;

/** Whom an SDK's repeat may mean. */
interface Candidate {
  readonly owner: string;
  readonly session: string | undefined;
  readonly length: number;
  readonly fingerprint: string;
}
/** A request that has ended without reaching its client whole. */
export interface Undelivered extends Candidate {
  readonly outcome: Outcome;
  /** Unix milliseconds. */
  readonly until: number;
}

/**
 * The official SDKs repeat a request by themselves, without any id, and say so in a header. Nothing is hashed until one does:
 * an ordinary request costs a seat in a roster.
 */
export class SdkRepeats {
  readonly #running = new Roster<KeptRun>();
  readonly #undelivered: Undelivered[] = [];
  #bytes = 0;

  add(run: KeptRun): void {
    this.#running.add(run);
  }
  delete(run: KeptRun): void {
    this.#running.delete(run);
  }

  /** Oldest go first when they are due, too many or too large together. */
  keep(entry: Undelivered, now: number, maxBytes: number): void {
    this.#undelivered.push(entry);
    this.#bytes += entry.outcome.size;
    for (let oldest = this.#undelivered[0]; oldest; oldest = this.#undelivered[0]) {
      if (oldest.until > now && this.#undelivered.length <= MOST_UNDELIVERED && this.#bytes <= maxBytes) return;
      this.#undelivered.shift();
      this.#bytes -= oldest.outcome.size;
    }
  }

  /** The request that this one repeats: same caller, session and body. */
  find(exchange: Exchange, fingerprint: string, now: number): KeptRun | Undelivered | undefined {
    const owner = ownerOf(exchange);
    const session = askedSession(exchange.ask);
    const length = exchange.inbound.bytes?.length ?? 0;
    const near = (entry: Candidate): boolean => entry.owner === owner && entry.session === session && Math.abs(entry.length - length) <= LENGTH_SLACK;
    const running = newest(
      this.#running
        .list()
        .filter(near)
        .sort((a, b) => a.begunAt - b.begunAt),
      fingerprint,
    );
    return (
      running ??
      newest(
        this.#undelivered.filter((entry) => entry.until > now && near(entry)),
        fingerprint,
      )
    );
  }
}

function newest<T extends Candidate>(entries: T[], fingerprint: string): T | undefined {
  return entries.slice(-MOST_COMPARED).findLast((entry) => entry.fingerprint === fingerprint);
}

/** Official SDKs count their own repeats in this header; 0 is the first try. */
export function isSdkRepeat(exchange: Exchange): boolean {
  return Number(exchange.headers['x-stainless-retry-count']) > 0;
}
