import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { register } from 'node:module';
import { basename, extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from '../contracts/plugin.ts';
import { isRecord } from '../wire/json.ts';
import { loadOwnFolder } from './load-folder.ts';

export interface LoadedPlugin {
  plugin: Plugin<unknown, object>;
  /** The user's file; undefined for hermes' own. */
  file: string | undefined;
  /** It took the place of hermes' own plugin of that name. */
  replaces: boolean;
  /** Where that one stood, if this one wants to stand elsewhere: the others, which name it, keep their places. */
  stood?: Place;
}

export type Place = Pick<Plugin, 'before' | 'after'>;

/** A plugin file that cannot be used; the message names the file and says why. */
export class PluginLoadError extends Error {
  constructor(file: string, why: string, cause?: unknown) {
    super(`plugin file ${file}: ${why}`, { cause });
    this.name = 'PluginLoadError';
  }
}

const HOOKS = ['handle', 'onChunk', 'onEnd', 'close', 'setup', 'local'] as const;
const FIELDS = new Set<string>([...HOOKS, 'name', 'before', 'after', 'optional', 'config', 'watches']);
/** Source of hermes' own plugins, which are loaded as compiled: a working directory that is this project holds them too. */
const OWN_SOURCE = fileURLToPath(new URL('../../plugins', import.meta.url));

/** Hermes' own plugins and the user's, one of the same name taking the place of hermes' own. */
export async function loadPlugins(directory: string): Promise<LoadedPlugin[]> {
  const own = await loadOwnFolder<Plugin<unknown, object>>('plugins');
  const loaded = new Map<string, LoadedPlugin>();
  for (const plugin of own.values()) loaded.set(plugin.name, { plugin, file: undefined, replaces: false });
  for (const file of userFiles(directory, new Set(own.keys()))) {
    const plugin = await loadUserPlugin(file);
    const before = loaded.get(plugin.name);
    if (before?.file) throw new PluginLoadError(file, `the name "${plugin.name}" is taken by ${before.file}`);
    loaded.set(plugin.name, before ? replacement(plugin, file, placeOf(before.plugin)) : { plugin, file, replaces: false });
  }
  return [...loaded.values()];
}

/** Does the folder hold plugin files of the user's? */
export async function hasUserPlugins(): Promise<(directory: string) => boolean> {
  const own = new Set((await loadOwnFolder('plugins')).keys());
  return (directory) => userFiles(directory, own).length > 0;
}

/** It stands where the one it replaces stood, unless it says otherwise. */
function replacement(plugin: Plugin<unknown, object>, file: string, stood: Place): LoadedPlugin {
  const elsewhere = plugin.before !== undefined || plugin.after !== undefined;
  return elsewhere ? { plugin, file, replaces: true, stood } : { plugin: { ...plugin, ...stood }, file, replaces: true };
}

function placeOf(plugin: Plugin<unknown, object>): Place {
  return { ...(plugin.before ? { before: plugin.before } : {}), ...(plugin.after ? { after: plugin.after } : {}) };
}

function userFiles(directory: string, own: ReadonlySet<string>): string[] {
  if (!existsSync(directory)) return [];
  const stripsTypes = ('typescript' in process.features && Boolean(process.features.typescript)) || extname(OWN_SOURCE_FILE) === '.ts';
  const isOwnSource = isSamePath(directory, OWN_SOURCE) || existsSync(join(directory, '..', 'src', 'pipeline', 'load-plugins.ts'));
  return readdirSync(directory)
    .filter((file) => ['.js', '.mjs', ...(stripsTypes ? ['.ts', '.mts'] : [])].includes(extname(file)) && !file.endsWith('.d.ts'))
    .filter((file) => !(isOwnSource && own.has(basename(file, extname(file)))))
    .sort()
    .map((file) => join(directory, file));
}
const OWN_SOURCE_FILE = fileURLToPath(import.meta.url);

function isSamePath(one: string, two: string): boolean {
  return existsSync(two) && realpathSync(one) === realpathSync(two);
}

async function loadUserPlugin(file: string): Promise<Plugin<unknown, object>> {
  resolveHermesFor(file);
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (cause) {
    throw new PluginLoadError(file, cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause), cause);
  }
  return checkShape(file, module.default);
}

function checkShape(file: string, value: unknown): Plugin<unknown, object> {
  if (!isPlugin(value)) throw new PluginLoadError(file, 'its default export must be a plugin object (see plugins/README.md)');
  if (typeof value.name !== 'string' || value.name === '') throw new PluginLoadError(file, '`name` must be a non-empty string');
  for (const key of Object.keys(value)) if (!FIELDS.has(key)) throw new PluginLoadError(file, `unknown field "${key}"; known are ${[...FIELDS].join(', ')}`);
  for (const hook of HOOKS)
    if (value[hook] !== undefined && typeof value[hook] !== 'function') throw new PluginLoadError(file, `\`${hook}\` must be a function`);
  for (const key of ['before', 'after'] as const) {
    const place = value[key];
    if (place !== undefined && ![place].flat().every((name) => typeof name === 'string'))
      throw new PluginLoadError(file, `\`${key}\` must be a plugin's name or a list of names`);
  }
  return value;
}

/** An object; `checkShape` looks at its members one by one, to say which is wrong. */
function isPlugin(value: unknown): value is Plugin<unknown, object> & Record<string, unknown> {
  return isRecord(value);
}

let resolving = false;
/**
 * `import … from 'hermes-agent/plugin'` works in a file anywhere, whether or not hermes is installed beside it. The hook
 * costs a thread, so it is started only for a file that needs it.
 */
function resolveHermesFor(file: string): void {
  if (resolving || !/['"](?:hermes-agent\/plugin|zod)['"]/.test(readFileSync(file, 'utf8'))) return;
  resolving = true;
  const targets = { 'hermes-agent/plugin': new URL('../contracts/index', import.meta.url).href + extname(OWN_SOURCE_FILE), zod: import.meta.resolve('zod') };
  const source = `const targets = ${JSON.stringify(targets)};
export async function resolve(specifier, context, next) {
  try { return await next(specifier, context); } catch (error) {
    if (Object.hasOwn(targets, specifier)) return next(targets[specifier], context);
    throw error;
  }
}`;
  register(`data:text/javascript,${encodeURIComponent(source)}`);
}
