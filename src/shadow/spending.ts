import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config, ModelEntry } from '../contracts/config.ts';
import type { ChatRequest } from '../wire/chat.ts';
import { messageText } from '../wire/chat.ts';

const NANO = 1_000_000_000;
/** Assumed where neither the request nor the model bounds the answer. */
const USUAL_ANSWER_TOKENS = 1_024;
/** A day's sum is of no use after the next. */
const KEEP_MS = 3 * 86_400_000;
const WRITE_EVERY_MS = 1_000;

/** What shadow answers have cost today. A run is admitted only when its likely cost still fits beside those that are running. */
export class Spending {
  readonly #cold: Pick<ColdStore, 'getValue' | 'setValue'>;
  #day = '';
  #clock: { minute: number; timezone: string; day: string } | undefined;
  #spent = 0;
  #held = 0;
  #loading: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** By model: the last cost, a better guess than its limits. */
  readonly #lastCost = new Map<string, number>();

  constructor(cold: Pick<ColdStore, 'getValue' | 'setValue'>) {
    this.#cold = cold;
  }

  /** Integer nano-dollars of today; what an earlier process spent counts. */
  async today(config: Config, now: number): Promise<number> {
    const day = this.#dayOf(config.cost.timezone, now);
    if (day !== this.#day) {
      this.#day = day;
      this.#spent = 0;
      this.#loading = this.#cold.getValue(`shadow:spent:${day}`).then(
        (stored) => {
          this.#spent += Number(stored ?? 0);
        },
        () => undefined,
      );
    }
    await this.#loading;
    return this.#spent;
  }

  /** Worked out once a minute: a formatter costs more than a decision. */
  #dayOf(timezone: string, now: number): string {
    const minute = Math.floor(now / 60_000);
    if (this.#clock?.minute !== minute || this.#clock.timezone !== timezone) {
      this.#clock = { minute, timezone, day: new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(now) };
    }
    return this.#clock.day;
  }

  /** Undefined: over the cap. Else settle with the real cost, once. */
  async admit(config: Config, request: ChatRequest, entry: ModelEntry, now: number): Promise<((costNanoUsd: number) => void) | undefined> {
    const cap = Math.round((config.shadow?.usd_per_day ?? 0) * NANO);
    const spent = await this.today(config, now);
    const expected = this.#lastCost.get(entry.id) ?? likelyCost(request, entry);
    if (spent >= cap || spent + this.#held + expected > cap) return undefined;
    this.#held += expected;
    return (costNanoUsd) => {
      this.#held -= expected;
      this.#spent += costNanoUsd;
      if (costNanoUsd > 0) this.#lastCost.set(entry.id, costNanoUsd);
    };
  }

  /** Within a second: one durable write for all runs that end in it. A crash forgets that second's money. */
  keep(now: () => number): void {
    this.#timer ??= setTimeout(() => void this.flush(now()), WRITE_EVERY_MS).unref();
  }
  async flush(now: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#day === '' || this.#spent === 0) return;
    // A store that is away gets the sum with the next run.
    await this.#cold.setValue(`shadow:spent:${this.#day}`, String(this.#spent), now + KEEP_MS).catch(() => undefined);
  }
}

/** From the newest prices and the longest answer; a quarter of the characters (all of CJK) as tokens. Unpriced models cost nothing that could be counted. */
function likelyCost(request: ChatRequest, entry: ModelEntry): number {
  const [pricing] = entry.pricing;
  if (!pricing) return 0;
  const bytes = request.messages.reduce((sum, message) => sum + Buffer.byteLength(messageText(message)), 0);
  const answer = request.max_completion_tokens ?? request.max_tokens ?? entry.maxTokens ?? USUAL_ANSWER_TOKENS;
  const limited = Math.min(answer, entry.maxTokens ?? answer);
  // Dollars per million tokens are a thousand nano-dollars per token.
  return Math.ceil(1_000 * ((bytes / 3) * pricing.input_per_million + limited * pricing.output_per_million));
}
