import type { ReloadResult } from '../config/reload.ts';
import type { TraceQuery, TraceRecord } from '../contracts/cold-store.ts';
import type { UpstreamState } from '../contracts/rooms.ts';
import type { RouteStatistics } from '../contracts/routing.ts';
import type { Metrics } from '../contracts/telemetry.ts';

/** What the workers of one machine ask of each other; each answers from its own memory. All of it passes as JSON. */
export type Questions = {
  /** OpenMetrics. */
  metrics: { ask: undefined; answer: string };
  trace: { ask: string; answer: TraceRecord | undefined };
  /** Those that are not over a page's limit by themselves; newest first. */
  traces: { ask: TraceQuery; answer: TraceRecord[] };
  upstreams: { ask: undefined; answer: UpstreamState[] };
  /** False: it knows no such upstream. */
  switchUpstream: { ask: { verb: 'drain' | 'reset'; id: string }; answer: boolean };
  statistics: { ask: undefined; answer: RouteStatistics };
};

export type Answers<Asked extends Record<keyof Asked, { ask: unknown; answer: unknown }>> = {
  [Name in keyof Asked]: (ask: Asked[Name]['ask']) => Asked[Name]['answer'] | Promise<Asked[Name]['answer']>;
};

/** The other workers of this machine, as one of them sees them. */
export interface Peers {
  /** How this one answers. */
  answer(answers: Answers<Questions>): void;
  /** What each of the others says; who does not answer in time is left out. */
  others<Name extends keyof Questions>(name: Name, ask: Questions[Name]['ask']): Promise<Questions[Name]['answer'][]>;
  /** Everybody's metrics in one text. */
  metrics: Metrics['text'];
  /** Gives the configuration to all of them. */
  reload(): Promise<ReloadResult>;
}

/** A gateway of one process. */
export function nobodyElse(own: { metrics: Metrics['text']; reload(): Promise<ReloadResult> }): Peers {
  return { answer: () => undefined, others: () => Promise.resolve([]), metrics: own.metrics, reload: own.reload };
}
