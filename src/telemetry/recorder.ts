import type { Config } from '../contracts/config.ts';
import type { Ending } from '../contracts/ending.ts';
import type { Exchange, Facts, ModelCall } from '../contracts/exchange.ts';
import type { Log, Metrics } from '../contracts/telemetry.ts';

const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const DIRECTIONS = ['input', 'cached', 'output', 'reasoning'] as const;

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
      degraded: metrics.counter('hermes_degraded_total', 'Answers of a fallback model, by the model that could not answer.', ['model']),
      attempts: metrics.counter('hermes_upstream_attempts_total', 'Upstream calls by how they ended.', ['upstream', 'outcome']),
      attemptDuration: metrics.histogram('hermes_upstream_attempt_duration_seconds', 'Upstream calls from their beginning to their last byte.', ['upstream']),
      tokens: metrics.counter('hermes_tokens_total', 'Tokens by model and direction.', ['model', 'direction']),
      estimated: metrics.counter('hermes_estimated_calls_total', 'Calls whose upstream told no usage: their tokens are estimates.', ['model']),
      cost: metrics.counter('hermes_cost_usd_total', 'Money spent, in dollars.', ['model', 'service']),
      unpriced: metrics.counter('hermes_unpriced_calls_total', 'Calls of models without a price.', ['model']),
      shadowCalls: metrics.counter('hermes_shadow_calls_total', 'Calls that shadow mode made; they are in no other metric.', ['model', 'outcome']),
      shadowCost: metrics.counter('hermes_shadow_cost_usd_total', 'Money that shadow mode spent, in dollars.', ['model']),
    };
  }

  /** A request that was meant for a model, however it ended. */
  ended(config: Config, ended: Ending): void {
    const { exchange, status } = ended;
    const facts = exchange?.answer?.facts ?? NO_FACTS;
    const labels = {
      route: toRouteLabel(config, exchange, facts),
      model: toModelLabel(config, exchange, facts),
      service: toServiceLabel(config, exchange?.caller?.service ?? exchange?.principal?.service),
      status: String(status),
    };
    const metrics = this.#metrics;
    metrics.requests.inc(labels);
    const source = exchange?.principal ? exchange.trace : undefined;
    metrics.duration.observe(labels, ended.durationMs / 1000, source);
    if (ended.overheadMs !== undefined) metrics.overhead.observe(NO_LABELS, Math.max(0, ended.overheadMs) / 1000, source);
    if (ended.firstTokenMs !== undefined) metrics.firstToken.observe(labels, ended.firstTokenMs / 1000, source);
    if (facts.degraded) metrics.degraded.inc({ model: facts.original ? modelLabel(config, facts.original.model) : labels.model });
    this.#log.info(toLine(ended, labels, facts), 'request');
  }

  /** A request of another kind (models, administration, no such path): its line alone. Looking at the gateway itself is not worth a line in normal operation. */
  looked(config: Config, ended: Ending): void {
    const service = toServiceLabel(config, ended.exchange?.caller?.service ?? ended.exchange?.principal?.service);
    const looks = (ended.method === 'GET' || ended.method === 'HEAD') && !ended.path.startsWith('/v1/');
    const level = ended.status < 400 && looks ? 'debug' : 'info';
    this.#log[level](toLine(ended, { route: '', model: '', service }, NO_FACTS), 'request');
  }

  called(config: Config, call: ModelCall): void {
    const metrics = this.#metrics;
    const { tokens, model } = call;
    if (call.shadow) {
      metrics.shadowCalls.inc({ model, outcome: call.outcome });
      if (call.costNanoUsd) metrics.shadowCost.inc({ model }, call.costNanoUsd / 1e9);
      return;
    }
    const labels = { upstream: call.upstream, outcome: call.outcome };
    metrics.attempts.inc(labels);
    metrics.attemptDuration.observe(labels, call.durationMs / 1000, { id: call.traceId });
    for (const direction of DIRECTIONS) if (tokens[direction] > 0) metrics.tokens.inc({ model, direction }, tokens[direction]);
    if (call.estimated) metrics.estimated.inc({ model });
    if (call.costNanoUsd === undefined) metrics.unpriced.inc({ model });
    else if (call.costNanoUsd > 0) metrics.cost.inc({ model, service: toServiceLabel(config, call.service) }, call.costNanoUsd / 1e9);
  }
}

const NO_FACTS: Facts = Object.freeze({});
const NO_LABELS = Object.freeze({});

/** Exactly one line a request: who, where to, how it ended, what it took. */
function toLine(ended: Ending, { route, model, service }: { route: string; model: string; service: string }, facts: Facts): object {
  const { exchange } = ended;
  const calls = exchange?.calls ?? [];
  const line: Record<string, unknown> = { request_id: ended.requestId };
  // The trace's own id, where the caller gave its request a name.
  if (ended.traceId !== ended.requestId) line.x_request_id = ended.traceId;
  if (ended.callerRequestId !== undefined) line.caller_request_id = ended.callerRequestId;
  line.method = ended.method;
  line.path = ended.path;
  line.status = ended.status;
  if (ended.error) line.error = ended.error;
  if (route !== '') line.route = route;
  if (model !== '') line.model = model;
  if (service !== '') line.service = service;
  const upstream = facts.upstream ?? calls.at(-1)?.upstream;
  if (upstream) line.upstream = upstream;
  if (exchange?.principal) line.key = exchange.principal.id;
  if (exchange?.caller) line.project = exchange.caller.project;
  if (exchange?.ask.sessionId !== undefined) {
    line.session_id = exchange.ask.sessionId;
    line.session_messages = facts.sessionMessages ?? exchange.session?.historyMessages ?? 0;
  }
  if (exchange?.route?.costRule) line.cost_rule = exchange.route.costRule;
  if (facts.trimmedMessages) line.trimmed_messages = facts.trimmedMessages;
  const attempts = facts.attempts ?? calls.length;
  if (attempts > 0) line.attempts = attempts;
  if (facts.degraded) line.degraded = true;
  if (facts.replayed) line.replayed = true;
  const toolCalls = facts.toolCalls ?? exchange?.toolCalls;
  if (toolCalls?.length) line.tool_calls = toolCalls;
  if (facts.unavailableTools?.length) line.unavailable_tools = facts.unavailableTools;
  if (calls.length > 0) addSpending(line, calls);
  line.duration_ms = tenths(ended.durationMs);
  if (ended.overheadMs !== undefined) line.overhead_ms = Math.round(ended.overheadMs * 100) / 100;
  if (ended.firstTokenMs !== undefined) line.first_token_ms = tenths(ended.firstTokenMs);
  return line;
}

function addSpending(line: Record<string, unknown>, calls: readonly ModelCall[]): void {
  let [input, output, nano] = [0, 0, 0];
  for (const { tokens, costNanoUsd } of calls) {
    input += tokens.input;
    output += tokens.output;
    nano += costNanoUsd ?? 0;
  }
  line.input_tokens = input;
  line.output_tokens = output;
  if (nano > 0) line.cost_usd = Number((nano / 1e9).toFixed(9));
}

function tenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}

/** Derived once a configuration: the values that labels may take. */
const known = new WeakMap<Config, { services: ReadonlySet<string>; routes: ReadonlySet<string> }>();
function knownOf(config: Config): { services: ReadonlySet<string>; routes: ReadonlySet<string> } {
  let values = known.get(config);
  if (values === undefined) {
    const services = [...config.auth.keys.flatMap(({ service, services }) => [service, ...services]), ...config.auth.signatures.map(({ service }) => service)];
    values = {
      services: new Set(services.filter((name) => !name.includes('*'))),
      routes: new Set(['default', 'none', 'passthrough', ...[...config.route_rules, ...(config.rollout?.rules ?? [])].map(({ id }) => id)]),
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
  return model === undefined ? '' : modelLabel(config, model);
}

function modelLabel(config: Config, model: string): string {
  return config.registry.models.has(model) ? model : 'other';
}
