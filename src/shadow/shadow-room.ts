import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange, RouteDecision } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import type { GuardsRoom, ToolsRoom } from '../contracts/rooms.ts';
import type { RouteSubject, RoutingRoom } from '../contracts/routing.ts';
import type { Observation, ShadowRoom } from '../contracts/shadow.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { capturedText } from './captured-text.ts';
import { type Comparison, costOf, differing, type Side, withAnswers } from './comparison.ts';
import { ComparisonLog } from './comparison-log.ts';
import { followAnswer } from './follow-answer.ts';
import { reportOf } from './report.ts';
import { rolloutReportOf } from './rollout-report.ts';
import { createRolloutWatch } from './rollout-watch.ts';
import { showTools, withoutTools } from './show-tools.ts';
import { Spending } from './spending.ts';

export interface ShadowDeps {
  cold: Pick<ColdStore, 'getValue' | 'setValue' | 'listValues'>;
  routing: RoutingRoom;
  /** Tools as a model is told of them. */
  functions: ToolsRoom['functions'];
  redact: GuardsRoom['redact'];
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

const AT_ONCE = 8;
const MAX_WAITING = 200;
/** A candidate that answers no sooner counts as failed. */
const LIMIT_MS = 120_000;

export function createShadowRoom({ cold, routing, functions, redact, log, metrics, environment }: ShadowDeps): ShadowRoom {
  const queue = new BoundedQueue(AT_ONCE, MAX_WAITING);
  const comparisons = new ComparisonLog(cold, environment, log);
  const spending = new Spending(cold);
  const counted = metrics.counter('hermes_shadow_comparisons_total', 'Requests that were also decided by the candidate rules.', ['outcome']);
  const rollout = createRolloutWatch({
    routing,
    redact,
    environment,
    keep: (comparison) => comparisons.add(comparison),
    offer: (job) => queue.offer(guarded(job)),
  });
  let lastConfig: Config | undefined;

  /** A job that never rejects. */
  function guarded(job: () => Promise<void>): () => Promise<void> {
    return () => job().catch((err: unknown) => log.warn({ err }, 'a shadow comparison failed'));
  }

  function keep(comparison: Comparison): void {
    counted.inc({ outcome: comparison.outcome });
    comparisons.add(comparison);
  }

  async function compare(shadowed: Shadowed): Promise<void> {
    const { exchange, config } = shadowed;
    let candidate: RouteDecision;
    try {
      candidate = await routing.compileRules(config, config.shadow?.rules ?? []).decide(shadowed.subject);
    } catch (thrown) {
      // The key may not use the candidate's model, for example: a finding, not a fault.
      keep({ ...shadowed.comparison, candidate_route: 'error', candidate_model: thrown instanceof HermesError ? thrown.code : 'error', outcome: 'failed' });
      return;
    }
    const comparison: Comparison = {
      ...shadowed.comparison,
      candidate_route: candidate.rule,
      candidate_model: candidate.model,
      other_tools: differing(exchange.route?.tools ?? [], candidate.tools ?? []),
    };
    if (!config.shadow?.run_models) keep(comparison);
    else await answer(shadowed, candidate, comparison);
  }

  async function answer(shadowed: Shadowed, candidate: RouteDecision, comparison: Comparison): Promise<void> {
    const { config, fork } = shadowed;
    const entry = config.registry.find(candidate.model);
    const settle = entry && (await spending.admit(config, fork.request, entry, environment.now()));
    if (!settle) {
      keep({ ...comparison, outcome: 'over_budget' });
      return;
    }
    fork.route = withoutTools(candidate);
    fork.request = showTools(fork.request, candidate, fork.ask, (names) => functions(config, names));
    const side = await run(fork, shadowed.next, log);
    settle(side.costNanoUsd);
    spending.keep(environment.now);
    keep(withAnswers(comparison, await shadowed.live, side));
  }

  function shadowing(exchange: Exchange, next: Next): Observation | undefined {
    const { shadow } = exchange.config;
    if (!shadow || exchange.background || exchange.route === undefined || exchange.route.explicit) return undefined;
    if (environment.random() >= shadow.sample) return undefined;
    const { shadowed, observation } = prepare(exchange, next, environment.now(), redact);
    // After this turn of the loop the live request is on its way: the pipeline wants its next() first, and so do its clients.
    const accepted = queue.offer(
      guarded(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        await compare(shadowed);
      }),
    );
    if (!accepted) counted.inc({ outcome: 'dropped' });
    return accepted ? observation : undefined;
  }

  return {
    observe(exchange, next) {
      lastConfig = exchange.config;
      const observations = [shadowing(exchange, next), rollout.observe(exchange)].filter((one) => one !== undefined);
      if (observations.length < 2) return observations[0];
      return { live: (answer) => observations.reduce((seen, observation) => observation.live(seen), answer) };
    },
    async report({ limit }) {
      const spent = lastConfig ? await spending.today(lastConfig, environment.now()) : 0;
      const all = await comparisons.read();
      const shadowed = all.filter(({ arm }) => arm === undefined);
      const report = reportOf(shadowed, { usdToday: spent / 1e9, usdPerDay: lastConfig?.shadow?.usd_per_day ?? null }, limit);
      const arms = rolloutReportOf(
        all.filter(({ arm }) => arm !== undefined),
        limit,
      );
      return arms ? { ...report, rollout: arms } : report;
    },
    async idle() {
      await queue.idle();
      await Promise.all([comparisons.flush(), spending.flush(environment.now())]);
    },
  };
}

interface Shadowed {
  exchange: Exchange;
  config: Config;
  /** Of the request as it is now, before live steps change it. */
  fork: Exchange;
  subject: RouteSubject;
  next: Next;
  live: Promise<Side>;
  comparison: Comparison;
}

function prepare(exchange: Exchange, next: Next, now: number, redact: GuardsRoom['redact']): { shadowed: Shadowed; observation: Observation } {
  const { config, ask, caller, route } = exchange;
  const startedAt = performance.now();
  let tell: (side: Side) => void = () => undefined;
  const live = new Promise<Side>((resolve) => {
    tell = resolve;
  });
  // Messages are copied one by one: a plugin of the live path may change them in place.
  const request = { ...exchange.request, messages: exchange.request.messages.map((message) => ({ ...message })) };
  const fork = exchange.fork({ request, detached: true, background: true });
  const comparison: Comparison = {
    at: now,
    request_id: exchange.id,
    live_route: route?.rule ?? '',
    candidate_route: '',
    // Without the hour's schedule and budgets, which the candidate has not been through.
    live_model: route?.modelBeforeCost ?? route?.model ?? '',
    candidate_model: '',
    other_tools: [],
    outcome: 'decided',
    ...capturedText(config, request.messages, redact),
  };
  // The live rule's priority must not decide the candidate's rules.
  const asked = caller && { ...caller, priority: ask.priority ?? 'normal' };
  const subject: RouteSubject = { ask, request, caller: asked, principal: exchange.principal };
  const observation: Observation = {
    live(answer) {
      if (config.shadow?.run_models) followAnswer(answer, exchange, startedAt, tell);
      return answer;
    },
  };
  return { shadowed: { exchange, config, fork, subject, next, live, comparison }, observation };
}

/** Reads the candidate's answer to its end. Never rejects. */
async function run(fork: Exchange, next: Next, log: Log): Promise<Side> {
  const startedAt = performance.now();
  const timer = setTimeout(() => fork.cancel(new HermesError('deadline_exceeded', 'The candidate took too long.')), LIMIT_MS);
  let resolve: (side: Side) => void = () => undefined;
  const ended = new Promise<Side>((settle) => {
    resolve = settle;
  });
  try {
    const answer = await next(fork);
    followAnswer(answer, fork, startedAt, resolve);
    const { stream } = answer;
    if (stream) while ((await stream.read()) !== null);
  } catch (err) {
    log.debug({ err }, 'a shadow answer broke off');
    resolve({ ok: false, text: '', costNanoUsd: costOf(fork.calls), latencyMs: performance.now() - startedAt, firstTokenMs: undefined });
  } finally {
    clearTimeout(timer);
  }
  return ended;
}
