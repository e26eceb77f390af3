import type { LoadedConfig } from '../config/load.ts';
import { parseLocalTool } from '../config/local-tool.ts';
import { formatProblem } from '../config/problems.ts';
import type { Matcher } from '../contracts/matcher.ts';
import type { Provider } from '../contracts/provider.ts';
import type { Rooms } from '../contracts/rooms.ts';
import type { Log, Metrics } from '../contracts/telemetry.ts';
import type { Terminal } from '../pipeline/compose.ts';
import { createGeneration, type Generation } from '../pipeline/generation.ts';
import type { LoadedPlugin } from '../pipeline/load-plugins.ts';
import { checkSettled, missingTools, toConfigError } from './late-mistakes.ts';
import type { Registries } from './registries.ts';

export interface GenerationsInput {
  rooms: Rooms;
  registries: Registries;
  plugins: readonly LoadedPlugin[];
  terminal: Terminal;
  log: Log;
  metrics: Metrics;
}

/** The generation in use, and its succession. */
export class Generations {
  readonly #input: GenerationsInput;
  #current: Generation | undefined;

  constructor(input: GenerationsInput) {
    this.#input = input;
  }

  readonly current = (): Generation => {
    if (this.#current === undefined) throw new Error('no generation has been set up');
    return this.#current;
  };

  /** Whole or nothing: rejects, and changes nothing, when a plugin or a rule does not take the configuration. */
  async use(loaded: LoadedConfig): Promise<void> {
    const made = await this.#setUp(loaded);
    const before = this.#current;
    this.#current = made;
    before?.retire(made);
  }

  retire(): void {
    this.#current?.retire();
  }

  /** What plugins added for a configuration that is then refused goes again. */
  async #setUp(loaded: LoadedConfig): Promise<Generation> {
    const { config } = loaded;
    const { rooms, registries, plugins, terminal, log, metrics } = this.#input;
    const { providers, matchers } = registries;
    const before = { providers: new Map(providers), matchers: new Map(matchers) };
    const hermes = {
      log,
      metrics,
      rooms,
      addProvider: (name: string, provider: Provider) => providers.set(name, provider),
      addMatcher: (name: string, matcher: Matcher) => matchers.set(name, matcher),
    };
    try {
      const generation = await createGeneration({ config, plugins, hermes, parseTool: parseLocalTool, terminal, log, previous: this.#current });
      checkSettled(loaded, registries, rooms.routing);
      for (const missing of missingTools(loaded)) log.warn({}, formatProblem(missing));
      rooms.routing.compile(config);
      return generation;
    } catch (thrown) {
      restore(providers, before.providers);
      restore(matchers, before.matchers);
      throw toConfigError(thrown, loaded);
    }
  }
}

function restore<T>(live: Map<string, T>, before: ReadonlyMap<string, T>): void {
  live.clear();
  for (const [name, value] of before) live.set(name, value);
}
