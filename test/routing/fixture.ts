import type { Config, ModelEntry, RuleConfig } from '../../src/contracts/config.ts';
import type { Ask, Caller, Exchange, Principal } from '../../src/contracts/exchange.ts';
import type { Matcher } from '../../src/contracts/matcher.ts';
import type { RouteEngine, RouteSubject, RoutingRoom } from '../../src/contracts/routing.ts';
import type { Environment, Log, Metrics } from '../../src/contracts/telemetry.ts';
import { loadOwnFolder } from '../../src/pipeline/load-folder.ts';
import { createRoutingRoom, type RoutingDeps } from '../../src/routing/routing-room.ts';
import type { ChatMessage, ChatRequest } from '../../src/wire/chat.ts';

export const matchers: ReadonlyMap<string, Matcher> = await loadOwnFolder<Matcher>('src/routing/matchers');

/** Counts as `name{label}`; warnings as they were logged. */
export interface Seen {
  counts: Map<string, number>;
  warnings: string[];
}
export function recordingTelemetry(): { log: Log; metrics: Metrics; seen: Seen } {
  const seen: Seen = { counts: new Map(), warnings: [] };
  const log: Log = { debug() {}, info() {}, error() {}, warn: (_, message) => void seen.warnings.push(message), child: () => log };
  const metrics: Metrics = {
    counter: (name) => ({
      inc: (labels, value = 1) => {
        const key = [name, ...Object.values(labels)].join(' ');
        seen.counts.set(key, (seen.counts.get(key) ?? 0) + value);
      },
    }),
    gauge: () => ({ set() {} }),
    histogram: () => ({ observe() {} }),
    text: async () => '',
    contentType: 'text/plain',
  };
  return { log, metrics, seen };
}

export function model(id: string, more: Partial<ModelEntry> = {}): ModelEntry {
  return {
    id,
    aliases: [],
    tier: undefined,
    failover: {
      strategy: 'priority',
      failure_threshold: 5,
      cooldown_ms: 1,
      max_attempts: 1,
      max_retry_after_ms: 1,
      affinity: 'none',
      hedge_ms: 0,
      commit: 'content',
    },
    upstreams: [],
    pricing: [],
    contextWindow: undefined,
    maxTokens: undefined,
    ownedBy: 'test',
    ...more,
  };
}

/** The parts of a configuration that routing reads; the rest is left out. */
export function config(
  rules: readonly RuleConfig[],
  more: Record<string, unknown> = {},
  models: readonly ModelEntry[] = [model('m_a', { aliases: ['alias_a'] }), model('m_b'), model('m_z')],
): Config {
  const byId = new Map(models.map((entry) => [entry.id, entry]));
  const part: unknown = {
    route_rules: rules,
    tools: [],
    tool_sources: [],
    default_model: 'm_z',
    registry: {
      models: byId,
      defaultModel: 'm_z',
      find: (name: string) => byId.get(name) ?? models.find((entry) => entry.aliases.includes(name) || name === `${entry.id}-name`),
      upstreams: [],
    },
    routing: { unknown_model: 'reject', timezone: 'UTC' },
    secrets: new Map([['EMB_KEY', 'sk-emb']]),
    trace: { capture_content: false, redact: [], sample: 1, keep_days: 1, otlp_endpoint: '' },
    cost: { timezone: 'UTC', unpriced: 'allow', schedule: [], budgets: [] },
    ...more,
  };
  return part as Config;
}

export function rule(id: string, match: unknown, more: Partial<RuleConfig> = {}): RuleConfig {
  return { id, match, model: 'm_a', ...more };
}

/** `*` at the end or alone: all that these tests need of access's patterns. */
export const allows = (patterns: readonly string[], name: string) =>
  patterns.some((pattern) => pattern === name || (pattern.endsWith('*') && name.startsWith(pattern.slice(0, -1))));

export interface Bench {
  room: RoutingRoom;
  engine: RouteEngine;
  seen: Seen;
  config: Config;
}
export function routing(rules: readonly RuleConfig[], more: Record<string, unknown> = {}, deps: Partial<RoutingDeps> & { now?: () => number } = {}): Bench {
  const { log, metrics, seen } = recordingTelemetry();
  const environment: Environment = { now: deps.now ?? (() => Date.UTC(2026, 10, 30, 12, 0)), uuid: () => 'id', random: () => 0.5 };
  const room = createRoutingRoom({ matchers, allows, environment, log, metrics, ...deps });
  const settings = config(rules, more);
  return { room, engine: room.compile(settings), seen, config: settings };
}

export interface Asking {
  messages?: ChatMessage[];
  request?: Partial<ChatRequest>;
  ask?: Ask;
  caller?: Partial<Caller>;
  principal?: Partial<Principal>;
}
/** The part of an exchange that a decision looks at, as an exchange. */
export function asking(text: string | Asking): Exchange {
  const given: Asking = typeof text === 'string' ? { messages: [{ role: 'user', content: text }] } : text;
  const subject: RouteSubject = {
    ask: given.ask ?? {},
    request: { messages: given.messages ?? [], ...given.request },
    caller: { service: 'shop', project: 'shop', user: undefined, userLevel: undefined, priority: 'normal', ...given.caller },
    principal: {
      id: 'key',
      service: 'shop',
      services: ['*'],
      project: 'shop',
      projects: ['*'],
      admin: false,
      models: ['*'],
      tools: ['*'],
      userLevels: ['*'],
      priorities: ['*'],
      passthrough: [],
      ...given.principal,
    },
  };
  return subject as Exchange;
}
export const routeOf = async (bench: Bench, text: string | Asking): Promise<string> => (await bench.engine.decide(asking(text))).rule;
