import type { ColdStore, LedgerRow } from '../../src/contracts/cold-store.ts';
import type { ModelCall } from '../../src/contracts/exchange.ts';
import type { Environment, Metrics } from '../../src/contracts/telemetry.ts';
import create from '../../src/stores/cold/sqljs.ts';
import { storeOptions } from '../stores/fixture.ts';

export interface Clock extends Environment {
  at: number;
  /** In order, so that failures can be read. */
  ids: number;
}
export function makeClock(at: number | string): Clock {
  return {
    at: typeof at === 'string' ? Date.parse(at) : at,
    ids: 0,
    now() {
      return this.at;
    },
    uuid() {
      this.ids += 1;
      return `id-${this.ids}`;
    },
    random: () => 0.5,
  };
}

export const NO_TOKENS = { input: 0, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 };
export function makeCall(over: Partial<ModelCall> = {}): ModelCall {
  return {
    id: 'call-1',
    traceId: 'trace-1',
    requestId: 'request-1',
    startedAt: Date.parse('2026-11-30T12:00:00Z'),
    durationMs: 10,
    firstTokenMs: undefined,
    model: 'fast_model',
    upstream: 'fast_model',
    upstreamIdentity: '',
    provider: 'simulator',
    route: 'default',
    service: 'support',
    project: 'shop',
    user: 'u1',
    session: undefined,
    key: 'support',
    outcome: 'ok',
    status: 200,
    error: undefined,
    tokens: { ...NO_TOKENS, input: 100, output: 10 },
    estimated: false,
    answered: true,
    costNanoUsd: 1000,
    shadow: false,
    ...over,
  };
}

/** A real embedded store in memory. */
export async function openCold(): Promise<ColdStore> {
  const cold = create(storeOptions('sqlite::memory:'));
  await cold.open();
  return cold;
}

/** A ledger store that can be away, and remembers what it was given. */
export function fakeLedgerStore(): Pick<ColdStore, 'name' | 'addToLedger'> & { batches: Map<string, LedgerRow[]>; tries: string[]; away: boolean } {
  const store = {
    name: 'sqljs' as const,
    batches: new Map<string, LedgerRow[]>(),
    tries: [] as string[],
    away: false,
    async addToLedger(id: string, rows: readonly LedgerRow[]) {
      store.tries.push(id);
      if (store.away) throw new Error('away');
      if (!store.batches.has(id)) store.batches.set(id, [...rows]);
    },
  };
  return store;
}
export const sumOf = (rows: Iterable<LedgerRow>, field: 'calls' | 'input_tokens' | 'output_tokens' = 'calls'): number =>
  [...rows].reduce((sum, row) => sum + row[field], 0);
export const noMetrics: Metrics = {
  counter: () => ({ inc: () => {} }),
  gauge: () => ({ set: () => {} }),
  histogram: () => ({ observe: () => {} }),
  text: async () => '',
  contentType: 'text/plain',
};
