import type { LoadedConfig } from '../config/load.ts';
import { ConfigError, type ConfigProblem, didYouMean } from '../config/problems.ts';
import { slipsAmong, toldOf, type UnlessAdded } from '../config/unless-added.ts';
import type { RuleConfig } from '../contracts/config.ts';
import type { RoutingRoom } from '../contracts/routing.ts';
import { PluginConfigError } from '../pipeline/plugin-config-error.ts';
import { RefusedRules } from '../routing/refused-rules.ts';
import { allows } from '../wire/patterns.ts';
import type { Registries } from './registries.ts';

/** What is wrong in the blocks of plugins, with its places. They were not set up then. */
export function toConfigError(thrown: unknown, loaded: LoadedConfig): unknown {
  if (!(thrown instanceof PluginConfigError)) return thrown;
  const problems = thrown.mistakes.map(({ path, message, unknown }) => {
    const mend = unknown ? didYouMean(unknown.name, unknown.known) || `; there are ${unknown.known.join(', ')}` : '';
    return loaded.problemAt(path, `${message}${mend}`);
  });
  return new ConfigError([...problems, ...slipsAmong(loaded.unlessAdded)]);
}

/** Once plugins are set up: names that none of them added, and rules whose matcher refuses them. Throws a ConfigError with all. */
export function checkSettled(loaded: LoadedConfig, registries: Registries, routing: RoutingRoom): void {
  const missing = loaded.unlessAdded.filter(({ kind, name }) => kind !== 'tool' && !addedOf(kind, registries).includes(name));
  const problems = missing.map((one) => settled(one, addedOf(one.kind, registries)));
  const told = new Set(problems.map(placeOf));
  // A matcher that nothing added is told already, with its mend.
  for (const problem of refusedRules(loaded, routing)) if (!told.has(placeOf(problem))) problems.push(problem);
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Tools that rules name and neither the file nor a plugin defines, once plugins are set up. */
export function missingTools({ unlessAdded, config }: LoadedConfig): ConfigProblem[] {
  const known = config.tools.map(({ id }) => id);
  return unlessAdded.filter(({ kind, name }) => kind === 'tool' && !known.some((tool) => allows([name], tool))).map((missing) => settled(missing, known));
}

function settled(missing: UnlessAdded, added: readonly string[]): ConfigProblem {
  return { ...missing.problem, message: toldOf(missing, added) };
}

function addedOf(kind: UnlessAdded['kind'], { providers, matchers }: Registries): string[] {
  if (kind === 'provider') return [...providers.keys()];
  return [...matchers].flatMap(([name, { modifiers = [] }]) => [name, ...modifiers]);
}

/** Candidates too: they would fail only when the first request is compared. */
function refusedRules(loaded: LoadedConfig, routing: RoutingRoom): ConfigProblem[] {
  const { config } = loaded;
  const of = (base: readonly string[], rules: readonly RuleConfig[] | undefined): ConfigProblem[] => {
    if (!rules) return [];
    try {
      routing.compileRules(config, rules);
      return [];
    } catch (thrown) {
      if (!(thrown instanceof RefusedRules)) throw thrown;
      return thrown.refused.map(({ rule, path, message }) => loaded.problemAt([...base, rules.indexOf(rule), ...path], message));
    }
  };
  return [...of(['route_rules'], config.route_rules), ...of(['shadow', 'rules'], config.shadow?.rules), ...of(['rollout', 'rules'], config.rollout?.rules)];
}

function placeOf({ file, line, column }: ConfigProblem): string {
  return `${file}:${line}:${column}`;
}
