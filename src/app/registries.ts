import type { Door } from '../contracts/door.ts';
import type { Matcher } from '../contracts/matcher.ts';
import type { Provider } from '../contracts/provider.ts';
import { loadOwnFolder } from '../pipeline/load-folder.ts';

/** Registries that the folders are, and that plugins may add to. */
export interface Registries {
  providers: Map<string, Provider>;
  matchers: Map<string, Matcher>;
  doors: Map<string, Door>;
}
export async function loadRegistries(): Promise<Registries> {
  const [providers, matchers, doors] = await Promise.all([
    loadOwnFolder<Provider>('src/providers'),
    loadOwnFolder<Matcher>('src/routing/matchers'),
    loadOwnFolder<Door>('src/doors'),
  ]);
  return { providers, matchers, doors };
}
