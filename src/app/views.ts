import type { TraceSource } from '../admin/traces.ts';
import type { Config } from '../contracts/config.ts';
import type { Rooms, UpstreamState } from '../contracts/rooms.ts';
import type { RouteStatistics } from '../contracts/routing.ts';
import type { Metrics } from '../contracts/telemetry.ts';
import type { Peers } from './peers.ts';
import type { TraceSink } from './trace-sink.ts';

export interface ViewsDeps {
  rooms: Pick<Rooms, 'upstream' | 'routing'>;
  config(): Config;
  traces: TraceSink;
  peers: Peers;
  /** Of this process alone. */
  metrics: Metrics['text'];
}
/** What operators see of the gateway, whichever of its workers they have reached. */
export interface Views {
  traces: TraceSource;
  upstreams(): Promise<UpstreamState[]>;
  switchUpstream(verb: 'drain' | 'reset', id: string): Promise<boolean>;
  statistics(): Promise<RouteStatistics>;
}

export function createViews({ rooms, config, traces, peers, metrics }: ViewsDeps): Views {
  const { upstream, routing } = rooms;
  const own = {
    async upstreams() {
      await upstream.look(config());
      return upstream.states(config());
    },
    switchUpstream: ({ verb, id }: { verb: 'drain' | 'reset'; id: string }) => upstream[verb](id, config()),
    statistics: () => routing.statistics(config()),
  };
  peers.answer({ metrics: () => metrics('openmetrics'), trace: (id) => traces.recentOne(id), traces: (query) => traces.recent(query), ...own });
  return {
    traces: {
      async get(id) {
        const own = traces.recentOne(id);
        const found = own ?? (await peers.others('trace', id)).find((trace) => trace !== undefined);
        return found ?? traces.get(id);
      },
      list: async (query) => traces.list(query, (await peers.others('traces', query)).flat()),
    },
    async upstreams() {
      const [mine, others] = await Promise.all([own.upstreams(), peers.others('upstreams', undefined)]);
      return mergeStates([mine, ...others]);
    },
    async switchUpstream(verb, id) {
      const done = await Promise.all([own.switchUpstream({ verb, id }), peers.others('switchUpstream', { verb, id })]);
      return done.flat().includes(true);
    },
    statistics: async () => mergeStatistics([own.statistics(), ...(await peers.others('statistics', undefined))]),
  };
}

/** From good to bad: of an upstream that workers see differently, the worst is told. */
const ORDER: readonly UpstreamState['state'][] = ['closed', 'half_open', 'set_aside', 'open', 'drained', 'key_missing'];

export function mergeStates(lists: readonly UpstreamState[][]): UpstreamState[] {
  const merged = new Map<string, UpstreamState>();
  for (const state of lists.flat()) {
    const known = merged.get(state.identity);
    if (known === undefined) {
      merged.set(state.identity, state);
      continue;
    }
    const worse = ORDER.indexOf(state.state) > ORDER.indexOf(known.state) ? state : known;
    merged.set(state.identity, { ...worse, consecutive_failures: Math.max(state.consecutive_failures, known.consecutive_failures) });
  }
  return [...merged.values()];
}

/** Counts are summed, times are the newest; shares, of which each worker knows its own newest requests, are their mean. */
export function mergeStatistics(all: readonly RouteStatistics[]): RouteStatistics {
  const [first] = all;
  if (first === undefined) throw new Error('statistics of nobody');
  const decisions = sum(all.map((each) => each.decisions));
  const rules = new Map<string, RouteStatistics['rules'][number]>();
  for (const { rule, hits, last_hit } of all.flatMap((each) => each.rules)) {
    const known = rules.get(rule) ?? { rule, hits: 0, share: null, last_hit: null };
    const newest = [known.last_hit, last_hit].filter((time) => time !== null).sort();
    rules.set(rule, { ...known, hits: known.hits + hits, last_hit: newest.at(-1) ?? null });
  }
  const withRollout = all.flatMap(({ rollout }) => rollout ?? []);
  return {
    since: all.map(({ since }) => since).sort()[0] ?? first.since,
    decisions,
    default_share: mean(all.map((each) => each.default_share)),
    usual_default_share: mean(all.map((each) => each.usual_default_share)),
    drifting: all.some(({ drifting }) => drifting),
    rules: [...rules.values()].map((each) => ({ ...each, share: each.rule === 'none' || decisions === 0 ? null : rounded(each.hits / decisions) })),
    rollout: first.rollout && {
      ...first.rollout,
      live: sum(withRollout.map(({ live }) => live)),
      candidate: sum(withRollout.map(({ candidate }) => candidate)),
    },
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : rounded(sum(known) / known.length);
}
function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}
