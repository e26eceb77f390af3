import type { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { Hooks } from '../contracts/plugin.ts';
import type { Outcome } from '../contracts/stream.ts';

/** A plugin in its place, with the hooks of this generation. */
export interface Layer {
  readonly name: string;
  readonly optional: boolean;
  // Each plugin has a local type of its own; the runner only hands it back to the plugin that made it.
  readonly hooks: Hooks<object>;
  readonly local: (() => object) | undefined;
}

/** One entering of one layer: what its `onEnd` belongs to. */
export interface Entry {
  readonly layer: Layer;
  readonly index: number;
  readonly exchange: Exchange;
  readonly local: object;
  /** It hangs on a stream, whose end runs its `onEnd`. */
  attached: boolean;
  ended: boolean;
}

/** Logs what a plugin threw and gives the error that stands for it. */
export type LayerFault = (at: Pick<Entry, 'layer' | 'exchange'>, thrown: unknown) => HermesError;

/** Runs the `onEnd`s, which come inner ones first, each once; a throw turns the end into that error for the outer ones. Gives that error. */
export async function runEnds(entries: readonly Entry[], outcome: Outcome, fault: LayerFault): Promise<HermesError | undefined> {
  let failed: HermesError | undefined;
  let current = outcome;
  for (const entry of entries) {
    if (entry.ended) continue;
    entry.ended = true;
    try {
      const result = entry.layer.hooks.onEnd?.(entry.exchange, current, entry.local);
      if (result) await result;
    } catch (thrown) {
      const error = fault(entry, thrown);
      if (entry.layer.optional) continue;
      failed = error;
      current = { ...current, status: 'failed', error };
    }
  }
  return failed;
}
