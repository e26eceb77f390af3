import { setTimeout as sleep } from 'node:timers/promises';
import type { Exchange } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import type { KeptAnswer } from './kept-answer.ts';
import type { KeptAnswers } from './kept-answers.ts';

/** The name of a crashed instance is free after this; the store renews the lease of a living one. */
const LEASE_MS = 5000;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 250;
/** How long the word counts that nothing is to be waited for. */
const NOTHING_MS = 2000;

/** Told once, when the answer is over: was it kept for the others? */
export type Leave = (kept: Promise<boolean> | undefined) => void;
export interface Taken {
  found?: KeptAnswer | undefined;
  /** Set where the others wait for what is asked now. */
  leave?: Leave | undefined;
}

export interface OneInstanceDeps {
  hot: HotStore;
  answers: KeptAnswers;
  log: Log;
  environment: Environment;
}

/**
 * Of several instances one asks the model; the others wait for the answer that it keeps. An answer that is not kept is waited for once:
 * then everybody asks for itself. Redis away: each instance alone.
 */
export class OneInstance {
  readonly #deps: OneInstanceDeps;

  constructor(deps: OneInstanceDeps) {
    this.#deps = deps;
  }

  async take(fork: Exchange, key: string, maxAgeMs: number): Promise<Taken> {
    const { hot, answers, log, environment } = this.#deps;
    const asked = environment.now();
    let waited: (() => void) | undefined;
    try {
      for (let pause = 0; !fork.cancelled; pause = Math.min(Math.max(pause * 1.5, FIRST_PAUSE_MS), LONGEST_PAUSE_MS)) {
        if (pause > 0) {
          waited ??= fork.trace.span('cache wait');
          await sleep(pause, undefined, { signal: fork.signal }).catch(() => undefined);
        }
        const lease = await hot.acquire(`cache:${key}`, LEASE_MS);
        // Looked for behind the lease: who had it before has kept its answer by now. What came since the question is fresh to anybody.
        const found = await answers.fromShared(key, Math.max(maxAgeMs, environment.now() - asked));
        if (found) {
          void lease?.release();
          return { found };
        }
        if (lease) return { leave: (kept) => void this.#leave(key, lease, kept) };
        if (pause > 0 && (await hot.get(nothingKey(key))) !== undefined) return {};
      }
    } catch (err) {
      log.debug({ err }, 'equal requests are joined within this process alone');
    } finally {
      waited?.();
    }
    return {};
  }

  async #leave(key: string, lease: { release(): Promise<void> }, kept: Promise<boolean> | undefined): Promise<void> {
    if (!(await kept)) await this.#deps.hot.set(nothingKey(key), '1', NOTHING_MS).catch(() => undefined);
    await lease.release();
  }
}

function nothingKey(key: string): string {
  return `${key}.nothing`;
}
