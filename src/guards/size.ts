import type { GuardConfig } from '../contracts/guards.ts';
import type { Excess } from './refusal.ts';

type OnHit = (hit: { guard: GuardConfig; kind: string; excess: Excess }) => void;

/** `output_size`: counts an answer's characters. */
export class Size {
  readonly #guards: readonly GuardConfig[];
  readonly #onHit: OnHit;
  readonly #told = new Set<GuardConfig>();
  #characters = 0;
  #full = false;

  /** `onHit` throws for a guard that blocks. */
  constructor(guards: readonly GuardConfig[], onHit: OnHit) {
    this.#guards = guards;
    this.#onHit = onHit;
  }

  /** The answer was cut off. */
  get full(): boolean {
    return this.#full;
  }

  /** What of this text still fits; what is no text passes. */
  take<T>(text: T): T | string {
    if (typeof text !== 'string') return text;
    const before = this.#characters;
    this.#characters += text.length;
    let fits = this.#full ? 0 : text.length;
    for (const guard of this.#guards) {
      const most = guard.max_characters ?? Number.POSITIVE_INFINITY;
      if (this.#characters <= most) continue;
      if (!this.#told.has(guard)) {
        this.#told.add(guard);
        this.#onHit({ guard, kind: 'size', excess: { most, unit: 'characters' } });
      }
      if (guard.action === 'redact') fits = Math.min(fits, Math.max(0, most - before));
    }
    if (fits === text.length) return text;
    this.#full = true;
    // Not in the middle of a character.
    const unit = text.charCodeAt(fits - 1);
    return text.slice(0, unit >= 0xd800 && unit <= 0xdbff ? fits - 1 : fits);
  }
}
