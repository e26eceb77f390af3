import type { Config } from '../contracts/config.ts';
import type { Arm } from '../contracts/exchange.ts';
import type { RouteStatistics } from '../contracts/routing.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { ShareWatch } from './share-watch.ts';

export interface Decided {
  rule: string;
  /** Nothing but the default took it; undefined where no rule was asked. */
  caught: boolean | undefined;
  arm: Arm | undefined;
}
export interface StatisticsKeeper {
  /** Live decisions; cheap, as each request makes one. */
  heard(decided: Decided): void;
  /** These rules are in use from now on: other rules have another usual. */
  watch(config: Config): void;
  read(config: Config): RouteStatistics;
}

/** What the rules of this process do: who hits how often and when last, and whether more than usual falls to the default. */
export function createRouteStatistics({ environment, log, metrics }: { environment: Environment; log: Log; metrics: Metrics }): StatisticsKeeper {
  const counted = metrics.counter('hermes_route_hits_total', 'Requests by the route rule that decided them.', ['route']);
  const shared = metrics.counter('hermes_rollout_total', 'Requests by whose rules decided them while a rollout is on.', ['arm']);
  const gauge = metrics.gauge('hermes_route_default_share', 'Share of the newest 200 routed requests that only the default took.');
  const since = environment.now();
  const rules = new Map<string, { hits: number; last: number }>();
  const arms = { live: 0, candidate: 0 };
  let decisions = 0;
  let watch = new ShareWatch();
  let watched = '';

  function drift(caught: boolean): void {
    const change = watch.add(caught);
    if (change === undefined) return;
    const fields = { default_share: rounded(watch.share), usual: rounded(watch.usual) };
    if (change === 'raised') log.warn(fields, 'more than usual falls to the default: the rules miss something new (hermes-cli route mine proposes keywords)');
    else log.info(fields, 'no more than usual falls to the default');
  }

  return {
    heard({ rule, caught, arm }) {
      counted.inc({ route: rule });
      if (arm) {
        shared.inc({ arm });
        arms[arm]++;
      }
      const now = environment.now();
      const known = rules.get(rule);
      if (known) {
        known.hits++;
        known.last = now;
      } else rules.set(rule, { hits: 1, last: now });
      if (rule !== 'none') decisions++;
      if (caught !== undefined) drift(caught);
    },
    watch({ route_rules, rollout }) {
      const text = JSON.stringify([route_rules, rollout?.rules]);
      if (text !== watched) watch = new ShareWatch();
      watched = text;
    },
    read({ route_rules, rollout }) {
      if (watch.share !== undefined) gauge.set({}, watch.share);
      const named = [...route_rules, ...(rollout?.rules ?? [])].map(({ id }) => id);
      const all = new Set([...named, 'default', ...(rules.has('none') ? ['none'] : [])]);
      return {
        since: new Date(since).toISOString(),
        decisions,
        default_share: rounded(watch.share),
        usual_default_share: rounded(watch.usual),
        drifting: watch.drifting,
        rules: [...all].map((rule) => {
          const { hits, last } = rules.get(rule) ?? { hits: 0, last: undefined };
          const share = rule === 'none' || decisions === 0 ? null : rounded(hits / decisions);
          return { rule, hits, share, last_hit: last === undefined ? null : new Date(last).toISOString() };
        }),
        rollout: rollout ? { percent: rollout.percent, by: rollout.by, ...arms } : null,
      };
    },
  };
}

function rounded(share: number | undefined): number | null {
  return share === undefined ? null : Math.round(share * 10_000) / 10_000;
}
