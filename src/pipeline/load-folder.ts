import { readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Source files run as TypeScript (development, tests) or as what was compiled from it. */
const OWN_EXTENSION = extname(fileURLToPath(import.meta.url));

/**
 * One of hermes' own folders as a registry: the file's name is the configuration name, its default export the thing.
 * `folder` is relative to the root of the compiled tree: `src/providers`.
 */
export async function loadOwnFolder<T>(folder: string): Promise<Map<string, T>> {
  return load(folder, namesIn(folder));
}

/** One of that folder, the others left unread: a database's client is a tenth of the start. Rejects for an unknown name. */
export async function loadOwnFile<T>(folder: string, name: string): Promise<T> {
  const names = namesIn(folder);
  if (!names.includes(name)) throw new Error(`there is no ${name} in ${folder}; there are ${names.join(', ')}`);
  return (await load<T>(folder, [name])).get(name) as T;
}

function namesIn(folder: string): string[] {
  return readdirSync(pathOf(folder))
    .filter((file) => extname(file) === OWN_EXTENSION && !file.endsWith('.d.ts'))
    .map((file) => basename(file, OWN_EXTENSION))
    .sort();
}

function pathOf(folder: string): string {
  return fileURLToPath(new URL(`../../${folder}`, import.meta.url));
}

async function load<T>(folder: string, names: readonly string[]): Promise<Map<string, T>> {
  const path = pathOf(folder);
  const modules = await Promise.all(names.map((name) => import(pathToFileURL(join(path, name + OWN_EXTENSION)).href) as Promise<{ default: T }>));
  return new Map(names.map((name, index) => [name, (modules[index] as { default: T }).default]));
}
