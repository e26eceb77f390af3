import { LRUCache } from 'lru-cache';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config, RuleConfig } from '../contracts/config.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Matcher } from '../contracts/matcher.ts';
import type { RouteEngine, RoutingRoom } from '../contracts/routing.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import type { Allows } from './choose-model.ts';
import { createEmbedder, type FetchJson } from './embedding/create-embedder.ts';
import { EmbeddingFailure } from './embedding/embedder.ts';
import { ExampleBank } from './embedding/example-bank.ts';
import { VectorCache } from './embedding/vector-cache.ts';
import { createEngine } from './engine.ts';
import { type LintCode, type LintSource, lintRules } from './lint.ts';
import { createRouteStatistics } from './route-statistics.ts';
import { type CompiledRule, RuleSet } from './rule-set.ts';
import { type SharedDecisions, TurnDecisions } from './turn-decisions.ts';

export interface RoutingDeps {
  /** The folder src/routing/matchers, and what plugins add. Looked at when rules are compiled. */
  matchers: ReadonlyMap<string, Matcher>;
  /** Access room's `allows`: may these patterns (`*`) name this model? */
  allows: Allows;
  environment: Environment;
  log: Log;
  metrics: Metrics;
  /** Calls an embedding service; absent (command line, tests): only `builtin` works, the others are skipped. */
  fetchJson?: FetchJson;
  /** Takes out of a question what must not leave for an embedding service. */
  veil?: (config: Config, text: string) => string;
  /** Keeps example vectors over restarts, and how turns were decided where no hot store is shared. */
  cold?: Pick<ColdStore, 'getValue' | 'setValue'>;
  hot?: Pick<HotStore, 'shared' | 'get' | 'set'>;
}

const TOLD_ON_LOAD: ReadonlySet<LintCode> = new Set(['unreachable', 'shadowed', 'duplicate']);

function lintSourceOf(config: Config, rules: readonly CompiledRule[]): LintSource {
  const listed = rules.map(({ config: { id, match, model, tools } }) => ({ id, match, model, tools: tools ?? [], line: undefined }));
  return {
    rules: listed,
    models: undefined,
    tools: new Set([...config.tools.map(({ id }) => id), ...config.tool_sources.map(({ id }) => `${id}.*`)]),
    keyTools: undefined,
    tested: undefined,
  };
}

/** Tools that people run take their time. */
const CONTINUED_WITHIN_MS = 86_400_000;

function sharedBy({ hot, cold, environment }: RoutingDeps): SharedDecisions | undefined {
  if (hot?.shared) return { get: (key) => hot.get(key), set: (key, value) => hot.set(key, value, CONTINUED_WITHIN_MS) };
  return cold && { get: (key) => cold.getValue(key), set: (key, value) => cold.setValue(key, value, environment.now() + CONTINUED_WITHIN_MS) };
}

/** Engines of the configurations and rule lists in use; embedders, vectors and breakers outlive a reload. */
export function createRoutingRoom(deps: RoutingDeps): RoutingRoom {
  const engines = new WeakMap<Config, RouteEngine>();
  const vectors = new LRUCache<string, VectorCache>({ max: 8 });
  const turns = new TurnDecisions(sharedBy(deps));
  const sets = new WeakMap<Config, WeakMap<readonly RuleConfig[], RuleSet>>();
  const statistics = createRouteStatistics(deps);
  const failures = deps.metrics.counter('hermes_embedding_failures_total', 'Times that rules by meaning were skipped because the embedding service failed.', [
    'reason',
  ]);

  /** Only what leaves this process. */
  function veiled(config: Config, text: string): string {
    return deps.veil && config.embedding && config.embedding.provider !== 'builtin' ? deps.veil(config, text) : text;
  }

  function vectorsOf(config: Config): VectorCache {
    const embedder = createEmbedder(config, deps.fetchJson, deps.environment);
    const cache = vectors.get(embedder.identity) ?? new VectorCache(embedder, deps.cold);
    vectors.set(embedder.identity, cache);
    return cache;
  }

  /** A list is compiled once under a configuration, whoever asks. */
  function setOf(config: Config, rules: readonly RuleConfig[]): RuleSet {
    const known = sets.get(config) ?? new WeakMap<readonly RuleConfig[], RuleSet>();
    sets.set(config, known);
    const made = known.get(rules) ?? build(config, rules);
    known.set(rules, made);
    return made;
  }

  function build(config: Config, rules: readonly RuleConfig[]): RuleSet {
    const bank = new ExampleBank(vectorsOf(config), {
      veil: (text) => veiled(config, text),
      failed: (reason) => {
        failures.inc({ reason });
        deps.log.warn({ reason }, 'the embedding service failed; rules by meaning are skipped');
      },
      timeoutMs: config.embedding?.timeout_ms ?? 800,
    });
    const set = new RuleSet(rules, deps.matchers, config.routing.timezone, bank);
    warn(set, bank, config);
    bank.warm();
    return set;
  }

  /** What the file's author should hear of on load; `route lint` says more. */
  function warn(set: RuleSet, bank: ExampleBank, config: Config): void {
    for (const { config: rule, condition } of set.rules) {
      if (condition.never !== undefined) deps.log.warn({ rule: rule.id }, `route rule ${rule.id} can never match: ${condition.never}`);
    }
    for (const { code, rule, message } of lintRules(lintSourceOf(config, set.rules), deps.matchers, deps.allows)) {
      if (TOLD_ON_LOAD.has(code)) deps.log.warn({ rule, code }, `route rule ${rule}: ${message}`);
    }
    if (bank.size > 0 && !config.embedding) {
      deps.log.warn({}, 'rules by meaning without an embedding block use the builtin embedding, which compares letters, not meaning');
    }
  }

  const { allows, environment } = deps;
  return {
    compile(config) {
      let engine = engines.get(config);
      if (!engine) {
        const candidate = config.rollout && setOf(config, config.rollout.rules);
        engine = createEngine({ set: setOf(config, config.route_rules), candidate, config, allows, environment, heard: statistics.heard, turns });
        engines.set(config, engine);
        statistics.watch(config);
      }
      return engine;
    },
    compileRules(config, rules) {
      return createEngine({ set: setOf(config, rules), candidate: undefined, config, allows, environment, heard: () => undefined, turns: undefined });
    },
    statistics: (config) => statistics.read(config),
    async embed(config, text, signal) {
      const timeoutMs = config.embedding?.timeout_ms ?? 800;
      try {
        return await vectorsOf(config).question(veiled(config, text), { timeoutMs, signal });
      } catch (cause) {
        if (cause instanceof EmbeddingFailure && cause.reason !== 'aborted') failures.inc({ reason: cause.reason });
        return undefined;
      }
    },
  };
}
