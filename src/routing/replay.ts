import type { Config } from '../contracts/config.ts';
import type { RouteEngine, RouteSubject } from '../contracts/routing.ts';
import { newestUserText } from '../wire/newest-user-text.ts';
import type { RecordedCall, RecordedRequest } from './recorded-traffic.ts';

export interface ReplayDeps {
  config: Config;
  /** The rules in use: for questions of which it is not recorded what decided them. */
  live: RouteEngine;
  candidate: RouteEngine;
  toSubject(request: RecordedRequest): RouteSubject;
  /** Integer nano-dollars of a call, had this model answered it; undefined without a price. */
  price(model: string, call: RecordedCall): number | undefined;
}
export interface ReplayReport {
  decided: number;
  /** Named their model themselves, or never got to the rules. */
  explicit: number;
  other_route: number;
  other_model: number;
  /** Of what has a price on both sides; integer nano-dollars. */
  before_nano_usd: number;
  after_nano_usd: number;
  /** Requests whose model then, or now, has no price. */
  unpriced: number;
  changes: ReplayChange[];
}
export interface ReplayChange {
  from_route: string;
  to_route: string;
  from_model: string;
  to_model: string;
  requests: number;
  before_nano_usd: number;
  after_nano_usd: number;
  examples: string[];
}

const EXAMPLES = 3;

/** Decides recorded requests again by other rules: what would change in route, model and money. */
export async function replay(requests: readonly RecordedRequest[], deps: ReplayDeps): Promise<ReplayReport> {
  const report: ReplayReport = {
    decided: 0,
    explicit: 0,
    other_route: 0,
    other_model: 0,
    before_nano_usd: 0,
    after_nano_usd: 0,
    unpriced: 0,
    changes: [],
  };
  const changes = new Map<string, ReplayChange>();
  for (const request of requests) {
    if (request.route === 'none' || (request.id !== undefined && request.route === undefined)) {
      report.explicit++;
      continue;
    }
    report.decided++;
    const subject = deps.toSubject(request);
    const before = await decidedThen(request, subject, deps);
    const after = await deps.candidate.decide(subject);
    const money = moneyOf(request, before.model, after.model, deps);
    if (!money) report.unpriced++;
    report.before_nano_usd += money?.before ?? 0;
    report.after_nano_usd += money?.after ?? 0;
    if (before.rule !== after.rule) report.other_route++;
    if (before.model !== after.model) report.other_model++;
    if (before.rule === after.rule && before.model === after.model) continue;
    const change = changeFor(changes, { from_route: before.rule, to_route: after.rule, from_model: before.model, to_model: after.model });
    change.requests++;
    change.before_nano_usd += money?.before ?? 0;
    change.after_nano_usd += money?.after ?? 0;
    const text = newestUserText(request.messages).trim();
    if (change.examples.length < EXAMPLES && text !== '' && !change.examples.includes(text)) change.examples.push(text);
  }
  report.changes = [...changes.values()].sort((a, b) => b.requests - a.requests);
  return report;
}

/** The rule's own model where the hour's schedule or a budget had put another in its place: the candidate has not been through these. */
async function decidedThen(request: RecordedRequest, subject: RouteSubject, { config, live }: ReplayDeps): Promise<{ rule: string; model: string }> {
  const { route, model, costRule } = request;
  if (route === undefined) return live.decide(subject);
  if (costRule === undefined && model !== undefined) return { rule: route, model };
  const named = config.route_rules.find(({ id }) => id === route)?.model;
  const own = named === undefined || named === 'default_model' ? undefined : config.registry.find(named)?.id;
  return { rule: route, model: own ?? (route === 'default' || named !== undefined ? config.registry.defaultModel : (model ?? '')) };
}

/** By the tokens of then: another model counts and answers a little differently. Undefined: something has no price. */
function moneyOf({ calls }: RecordedRequest, from: string, to: string, { price }: ReplayDeps): { before: number; after: number } | undefined {
  let [before, after] = [0, 0];
  for (const call of calls) {
    if (!call.answered) continue;
    const was = price(call.model, call);
    const would = from === to ? was : price(to, call);
    if (was === undefined || would === undefined) return undefined;
    before += was;
    after += would;
  }
  return { before, after };
}

function changeFor(changes: Map<string, ReplayChange>, pair: Pick<ReplayChange, 'from_route' | 'to_route' | 'from_model' | 'to_model'>): ReplayChange {
  const key = JSON.stringify(Object.values(pair));
  const known = changes.get(key);
  if (known) return known;
  const made: ReplayChange = { ...pair, requests: 0, before_nano_usd: 0, after_nano_usd: 0, examples: [] };
  changes.set(key, made);
  return made;
}
