import type { Config } from '../contracts/config.ts';
import type { Exchange, Facts, ModelCall } from '../contracts/exchange.ts';
import type { Log, Metrics } from '../contracts/telemetry.ts';

/** What is told of an exchange that is over. Milliseconds. */
export interface Ended {
  exchange: Exchange | undefined;
  traceId: string;
  requestId: string;
  method: string;
  path: string;
  status: number;
  error: string | undefined;
  durationMs: number;
  overheadMs: number | undefined;
  firstTokenMs: number | undefined;
}

const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** The log line and the metrics of every request and every upstream call. Labels come from the configuration; anything else is `other`. */
export class Recorder {
  readonly #log: Log;
  readonly #metrics;

  constructor(log: Log, metrics: Metrics) {
    this.#log = log;
    this.#metrics = {
      requests: metrics.counter('hermes_requests_total', 'Requests by where they went and how they ended.', ['route', 'model', 'service', 'status']),
      duration: metrics.histogram('hermes_request_duration_seconds', 'From the first byte in to the last byte out.', ['route', 'model', 'service']),
      overhead: metrics.histogram('hermes_overhead_seconds', "Hermes' own share of the time to the answer's head.", [], OVERHEAD_BUCKETS),
      firstToken: metrics.histogram('hermes_time_to_first_token_seconds', 'Until the first content of a stream left for the client.', ['model']),
      degraded: metrics.counter('hermes_degraded_total', 'Answers that a fallback gave.', ['model']),
      replays: metrics.counter('hermes_idempotent_replays_total', 'Answers given from a stored outcome.'),
      attempts: metrics.counter('hermes_upstream_attempts_total', 'Upstream calls by how they ended.', ['upstream', 'outcome']),
      tokens: metrics.counter('hermes_tokens_total', 'Tokens by model and direction.', ['model', 'direction']),
      cost: metrics.counter('hermes_cost_usd_total', 'Money spent, in dollars.', ['model', 'service']),
      unpriced: metrics.counter('hermes_unpriced_calls_total', 'Calls of models without a price.', ['model']),
    };
  }

  ended(config: Config, ended: Ended): void {
    const { exchange, status } = ended;
    const facts = exchange?.answer?.facts ?? {};
    const labels = {
      route: toRouteLabel(config, exchange, facts),
      model: toModelLabel(config, exchange, facts),
      service: toServiceLabel(config, exchange?.caller?.service),
    };
    const metrics = this.#metrics;
    metrics.requests.inc({ ...labels, status: String(status) });
    metrics.duration.observe(labels, ended.durationMs / 1000);
    if (ended.overheadMs !== undefined) metrics.overhead.observe({}, Math.max(0, ended.overheadMs) / 1000);
    if (ended.firstTokenMs !== undefined) metrics.firstToken.observe({ model: labels.model }, ended.firstTokenMs / 1000);
    if (facts.degraded) metrics.degraded.inc({ model: labels.model });
    if (facts.replayed) metrics.replays.inc({});
    this.#line(ended, labels, facts);
  }

  called(config: Config, call: ModelCall): void {
    const metrics = this.#metrics;
    metrics.attempts.inc({ upstream: call.upstream, outcome: call.outcome });
    const { tokens, model } = call;
    for (const direction of ['input', 'cached', 'output', 'reasoning'] as const)
      if (tokens[direction] > 0) metrics.tokens.inc({ model, direction }, tokens[direction]);
    if (call.costNanoUsd === undefined) metrics.unpriced.inc({ model });
    else if (call.costNanoUsd > 0) metrics.cost.inc({ model, service: toServiceLabel(config, call.service) }, call.costNanoUsd / 1e9);
  }

  /** Exactly one line a request. */
  #line(ended: Ended, labels: { route: string; model: string; service: string }, facts: Facts): void {
    const { exchange } = ended;
    const fields = {
      request_id: ended.requestId,
      trace_id: ended.traceId,
      method: ended.method,
      path: ended.path,
      status: ended.status,
      ...(ended.error ? { error: ended.error } : {}),
      ...labels,
      ...(facts.upstream ? { upstream: facts.upstream } : {}),
      attempts: facts.attempts ?? exchange?.calls.length ?? 0,
      ...(exchange?.principal ? { key: exchange.principal.id, project: exchange.caller?.project } : {}),
      ...(exchange?.ask.sessionId === undefined
        ? {}
        : { session_id: exchange.ask.sessionId, session_messages: facts.sessionMessages ?? exchange.session?.historyMessages ?? 0 }),
      ...(facts.degraded ? { degraded: true } : {}),
      ...(facts.replayed ? { replayed: true } : {}),
      ...(facts.toolCalls?.length ? { tool_calls: facts.toolCalls } : {}),
      ...(facts.unavailableTools?.length ? { unavailable_tools: facts.unavailableTools } : {}),
      tokens: exchange?.calls.reduce((sum, call) => sum + call.tokens.input + call.tokens.output, 0) ?? 0,
      duration_ms: Math.round(ended.durationMs * 10) / 10,
      ...(ended.overheadMs === undefined ? {} : { overhead_ms: Math.round(ended.overheadMs * 100) / 100 }),
      ...(ended.firstTokenMs === undefined ? {} : { first_token_ms: Math.round(ended.firstTokenMs * 10) / 10 }),
    };
    this.#log.info(fields, 'request');
  }
}

/** Derived once a configuration: the values that labels may take. */
const known = new WeakMap<Config, { services: ReadonlySet<string>; routes: ReadonlySet<string> }>();
function knownOf(config: Config): { services: ReadonlySet<string>; routes: ReadonlySet<string> } {
  let values = known.get(config);
  if (values === undefined) {
    const services = [...config.auth.keys.flatMap(({ service, services }) => [service, ...services]), ...config.auth.signatures.map(({ service }) => service)];
    values = {
      services: new Set(services.filter((name) => !name.includes('*'))),
      routes: new Set(['default', 'none', 'passthrough', ...config.route_rules.map(({ id }) => id)]),
    };
    known.set(config, values);
  }
  return values;
}

export function toServiceLabel(config: Config, service: string | undefined): string {
  if (service === undefined) return '';
  return knownOf(config).services.has(service) ? service : 'other';
}

function toRouteLabel(config: Config, exchange: Exchange | undefined, facts: Facts): string {
  const route = facts.route ?? exchange?.route?.rule;
  if (route === undefined) return '';
  return knownOf(config).routes.has(route) ? route : 'other';
}

function toModelLabel(config: Config, exchange: Exchange | undefined, facts: Facts): string {
  const model = facts.model ?? exchange?.route?.model;
  if (model === undefined) return '';
  return config.registry.models.has(model) ? model : 'other';
}
