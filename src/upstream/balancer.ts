import type { FailoverConfig } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import { PeakEwma } from './latency.ts';

/** One upstream's place in one model's rotation. */
class Slot {
  /** Smooth weighted round-robin: what it has saved up. */
  current = 0;
  readonly latency = new PeakEwma();
}

/**
 * Chooses among upstreams that may be called. State is kept by model and upstream identity and lives on across reloads;
 * weights and strategy come from the configuration each time.
 */
export class Balancer {
  readonly #models = new Map<string, Map<string, Slot>>();

  /** `candidates` in list order, each with a weight above 0; undefined when there is none. */
  pick(model: string, strategy: FailoverConfig['strategy'], candidates: readonly UpstreamTarget[], now: number): UpstreamTarget | undefined {
    if (candidates.length < 2 || strategy === 'priority') return candidates[0];
    return strategy === 'least_latency' ? this.#fastest(model, candidates, now) : this.#next(model, candidates);
  }

  /** The same choice, without moving on. */
  preview(model: string, strategy: FailoverConfig['strategy'], candidates: readonly UpstreamTarget[], now: number): UpstreamTarget | undefined {
    if (strategy !== 'weighted_round_robin') return this.pick(model, strategy, candidates, now);
    const ahead = (target: UpstreamTarget): number => this.#slot(model, target).current + target.weight;
    return candidates.reduce<UpstreamTarget | undefined>((best, target) => (best === undefined || ahead(target) > ahead(best) ? target : best), undefined);
  }

  latency(model: string, target: UpstreamTarget): PeakEwma {
    return this.#slot(model, target).latency;
  }

  /** Smooth weighted round-robin as nginx does it: `ngx_http_upstream_round_robin.c`, commit 52327e0627f4. */
  #next(model: string, candidates: readonly UpstreamTarget[]): UpstreamTarget | undefined {
    let best: UpstreamTarget | undefined;
    let bestSlot: Slot | undefined;
    let total = 0;
    for (const target of candidates) {
      const slot = this.#slot(model, target);
      slot.current += target.weight;
      total += target.weight;
      if (bestSlot === undefined || slot.current > bestSlot.current) {
        best = target;
        bestSlot = slot;
      }
    }
    if (bestSlot) bestSlot.current -= total;
    return best;
  }

  #fastest(model: string, candidates: readonly UpstreamTarget[], now: number): UpstreamTarget | undefined {
    let best: UpstreamTarget | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const target of candidates) {
      const cost = this.latency(model, target).cost(now);
      if (cost < least) {
        best = target;
        least = cost;
      }
    }
    return best;
  }

  #slot(model: string, target: UpstreamTarget): Slot {
    let slots = this.#models.get(model);
    if (slots === undefined) {
      slots = new Map();
      this.#models.set(model, slots);
    }
    let slot = slots.get(target.identity);
    if (slot === undefined) {
      slot = new Slot();
      slots.set(target.identity, slot);
    }
    return slot;
  }
}
