import type { Config } from '../contracts/config.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import type { ContextRoom, GuardsRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { GuardedExchange, type GuardParts } from './guarded-exchange.ts';
import { createRedactor } from './redactor.ts';
import { compileGuards, type GuardSet, type WordFinder } from './rules.ts';
import { TextWindow } from './text-window.ts';
import { Vault } from './vault.ts';
import type { FetchJson } from './webhook.ts';

export interface GuardsDeps {
  log: Log;
  metrics: Metrics;
  environment: Environment;
  fetchJson: FetchJson;
  countMessage: ContextRoom['countMessage'];
  /** Finds words and phrases as keywords of rules are found. */
  createWordFinder(words: readonly string[]): WordFinder;
}

export function createGuardsRoom(deps: GuardsDeps): GuardsRoom {
  const hits = deps.metrics.counter('hermes_guard_hits_total', 'Requests and answers in which a guard found something.', ['guard', 'action']);
  const parts: GuardParts = { ...deps, hits, told: new WeakMap() };
  const sets = new WeakMap<Config, GuardSet>();
  const setOf = (config: Config): GuardSet => {
    let set = sets.get(config);
    if (set === undefined) {
      set = compileGuards(config, deps.createWordFinder);
      sets.set(config, set);
    }
    return set;
  };
  const redactors = new WeakMap<Config, (content: unknown) => unknown>();
  return {
    prepare: (config) => void setOf(config),
    redact(config, content) {
      let redactor = redactors.get(config);
      if (redactor === undefined) {
        redactor = createRedactor(config.trace.redact, deps.createWordFinder);
        redactors.set(config, redactor);
      }
      return redactor(content);
    },
    async guard(exchange: Exchange, next: Next): Promise<Answer> {
      const guarded = new GuardedExchange(parts, setOf(exchange.config), exchange);
      const request = await guarded.input();
      // The request itself stays as it was: what is outside goes on with it.
      const answer = request === exchange.request ? await next() : await next(exchange.fork({ request }));
      if (exchange.answer !== answer) exchange.answer = answer;
      await guarded.output(answer);
      return answer;
    },
    veil(config, text) {
      const { input } = setOf(config);
      if (input.empty || !input.changes) return text;
      const replace: ConstructorParameters<typeof TextWindow>[0]['replace'] = (hit) => (hit.guard.action === 'flag' ? undefined : `⟦${hit.kind}⟧`);
      return new TextWindow({ rules: input, vault: new Vault(), onHit: () => undefined, replace }).push(text, true);
    },
    found(config, text) {
      const { input } = setOf(config);
      if (input.empty) return [];
      return input
        .look(text)
        .hits.sort((one, two) => one.start - two.start || one.end - two.end)
        .map(({ start, end }) => text.slice(start, end));
    },
  };
}
