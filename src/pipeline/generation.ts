import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { LocalTool } from '../contracts/local-tool.ts';
import type { Hermes, Hooks } from '../contracts/plugin.ts';
import type { Log } from '../contracts/telemetry.ts';
import { compose, type Pipeline, type Terminal } from './compose.ts';
import type { Layer } from './entry.ts';
import { type LoadedPlugin, PluginLoadError } from './load-plugins.ts';
import { orderPlugins } from './order.ts';
import { PluginConfigError, type PluginConfigMistake, toMistakes } from './plugin-config-error.ts';

/** The steps that a request passes through which is not a chat: pass-through, models, admin. */
const IDENTIFY = ['auth'];
const PROXY = ['auth', 'limits'];

export interface PluginView {
  name: string;
  file: string | null;
  optional: boolean;
  hooks: string[];
}

/** Configuration, compiled pipelines and hooks. An exchange keeps the one that it began with. */
export interface Generation {
  readonly config: Config;
  /** The whole pipeline, `send` innermost. */
  readonly chat: Pipeline;
  /** Only the step `auth` around a terminal of the caller's. */
  identify(exchange: Exchange, terminal: Terminal): ReturnType<Pipeline>;
  /** Only `auth` and `limits` around it. */
  proxy(exchange: Exchange, terminal: Terminal): ReturnType<Pipeline>;
  readonly plugins: readonly PluginView[];
  /** `auth` is hermes' own: keys may be checked before a body is read. */
  readonly ownAuth: boolean;
  /** A step of the user's sees requests before they are sent, and may change them in place. */
  readonly touchesRequests: boolean;
  /** Counts exchanges; the hooks are closed when the generation is retired and the last has left. */
  enter(): void;
  leave(): void;
  /** `next` takes over; hooks that it shares stay open. */
  retire(next?: Generation): void;
  readonly hooks: ReadonlyMap<string, Hooks<object>>;
  /** What each plugin's `setup` added. */
  readonly tools: ReadonlyMap<string, readonly LocalTool[]>;
}

export interface GenerationInput {
  config: Config;
  plugins: readonly LoadedPlugin[];
  hermes: Omit<Hermes, 'config' | 'addTool'>;
  /** Throws an Error that says what is wrong with a plugin's tool. */
  parseTool(value: unknown): LocalTool;
  terminal: Terminal;
  log: Log;
  previous?: Generation | undefined;
}

/** Sets every plugin up; their tools join those of the configuration, whose own win. Throws a PluginConfigError, or an Error that names the plugin whose setup fails. */
export async function createGeneration(input: GenerationInput): Promise<Generation> {
  const { config, terminal, log } = input;
  const settings = readSettings(config, input.plugins);
  const ordered = orderPlugins(input.plugins, config.pipeline.order);
  const layers: Layer[] = [];
  const tools = new Map<string, LocalTool[]>();
  for (const loaded of ordered) {
    const added: LocalTool[] = [];
    layers.push(await toLayer(loaded, settings.get(loaded.plugin.name), input, added));
    tools.set(loaded.plugin.name, added);
  }
  joinTools(config, ordered, tools, log);
  const only = (names: readonly string[]): Layer[] => layers.filter(({ name }) => names.includes(name));
  const identifyLayers = only(IDENTIFY);
  const proxyLayers = only(PROXY);
  const hooks = new Map(layers.map((layer) => [layer.name, layer.hooks]));
  let exchanges = 0;
  let retired = false;
  let heir: Generation | undefined;
  const closeWhenEmpty = (): void => {
    if (!retired || exchanges > 0) return;
    for (const [name, hook] of hooks)
      if (heir?.hooks.get(name) !== hook) void Promise.resolve(hook.close?.()).catch((err: unknown) => log.error({ plugin: name, err }, 'plugin close failed'));
  };
  return {
    config,
    chat: compose(layers, terminal, log),
    identify: (exchange, end) => compose(identifyLayers, end, log)(exchange),
    proxy: (exchange, end) => compose(proxyLayers, end, log)(exchange),
    plugins: ordered.map(({ plugin, file }, index) => ({
      name: plugin.name,
      file: file ?? null,
      optional: plugin.optional ?? false,
      hooks: hookNames(layers[index]),
    })),
    ownAuth: ordered.some(({ plugin, file }) => plugin.name === 'auth' && file === undefined),
    touchesRequests: ordered.some(({ file }, index) => file !== undefined && layers[index]?.hooks.handle !== undefined),
    hooks,
    tools,
    enter: () => {
      exchanges++;
    },
    leave: () => {
      exchanges--;
      closeWhenEmpty();
    },
    retire: (next) => {
      retired = true;
      heir = next;
      closeWhenEmpty();
    },
  };
}

function hookNames(layer: Layer | undefined): string[] {
  return (['handle', 'onChunk', 'onEnd', 'close'] as const).filter((name) => layer?.hooks[name] !== undefined);
}

/** What each plugin's `config` makes of its block; all that is wrong in them at once, and names of plugins that do not exist. */
function readSettings({ plugins: blocks, pipeline }: Config, plugins: readonly LoadedPlugin[]): ReadonlyMap<string, unknown> {
  const known = plugins.map(({ plugin }) => plugin.name);
  const settings = new Map<string, unknown>();
  const mistakes: PluginConfigMistake[] = [];
  for (const [index, name] of pipeline.order.entries())
    if (!known.includes(name))
      mistakes.push({ path: ['pipeline', 'order', index], message: `names the plugin "${name}", which does not exist`, unknown: { name, known } });
  for (const name of Object.keys(blocks))
    if (!known.includes(name)) mistakes.push({ path: ['plugins', name], message: 'configures a plugin that does not exist', unknown: { name, known } });
  for (const { plugin } of plugins) {
    try {
      settings.set(plugin.name, plugin.config ? plugin.config.parse(blocks[plugin.name] ?? {}) : blocks[plugin.name]);
    } catch (thrown) {
      mistakes.push(...toMistakes(plugin.name, thrown));
    }
  }
  if (mistakes.length > 0) throw new PluginConfigError(mistakes);
  return settings;
}

/** Nobody has looked at the configuration's tools yet. */
function joinTools(config: Config, ordered: readonly LoadedPlugin[], tools: ReadonlyMap<string, readonly LocalTool[]>, log: Log): void {
  const owners = new Map<string, LoadedPlugin>();
  const inFile = new Set(config.tools.map(({ id }) => id));
  for (const loaded of ordered) {
    for (const tool of tools.get(loaded.plugin.name) ?? []) {
      const owner = owners.get(tool.id);
      if (owner) throw new PluginLoadError(fileOf(loaded), `the tool "${tool.id}" has been added already, by ${fileOf(owner)}`);
      owners.set(tool.id, loaded);
      if (inFile.has(tool.id)) log.warn({ plugin: loaded.plugin.name, tool: tool.id }, "the configuration's own tool takes the place of a plugin's");
      else config.tools.push(tool);
    }
  }
}

function fileOf({ plugin, file }: LoadedPlugin): string {
  return file ?? plugin.name;
}

/** `settings`: as its `config` gave them. `added`: takes the tools. */
async function toLayer(loaded: LoadedPlugin, settings: unknown, input: GenerationInput, added: LocalTool[]): Promise<Layer> {
  const { plugin, file } = loaded;
  const value = input.config.plugins[plugin.name];
  const { previous } = input;
  const before = previous?.hooks.get(plugin.name);
  // Unchanged configuration: the same hooks object, so its state lives on. Hermes' own steps read the whole configuration.
  const unchanged = before !== undefined && file !== undefined && isDeepStrictEqual(previous?.config.plugins[plugin.name], value);
  if (unchanged) added.push(...(previous?.tools.get(plugin.name) ?? []));
  let open = true;
  const addTool = (tool: unknown): void => {
    if (!open) throw new Error('addTool is for setup: the tools of a generation do not change later');
    added.push(input.parseTool(tool));
  };
  const hooks = unchanged ? before : await setUp(loaded, settings, before, { ...input.hermes, addTool, config: input.config });
  open = false;
  return { name: plugin.name, optional: plugin.optional ?? false, hooks, local: plugin.local };
}

async function setUp(loaded: LoadedPlugin, settings: unknown, previous: Hooks<object> | undefined, hermes: Hermes): Promise<Hooks<object>> {
  const { plugin } = loaded;
  try {
    const made = await plugin.setup?.(hermes, settings, previous);
    return made ? joinHooks(made, plugin) : plugin;
  } catch (cause) {
    throw new PluginLoadError(fileOf(loaded), `setup failed: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

/** What `setup` gives, and for what it leaves out the plugin's own. */
function joinHooks(made: Hooks<object>, plugin: Hooks<object>): Hooks<object> {
  if (!plugin.handle && !plugin.onChunk && !plugin.onEnd && !plugin.close && plugin.watches === undefined) return made;
  const handle = made.handle?.bind(made) ?? plugin.handle?.bind(plugin);
  const onChunk = made.onChunk?.bind(made) ?? plugin.onChunk?.bind(plugin);
  const onEnd = made.onEnd?.bind(made) ?? plugin.onEnd?.bind(plugin);
  const close = made.close?.bind(made) ?? plugin.close?.bind(plugin);
  return {
    ...(handle ? { handle } : {}),
    ...(onChunk ? { onChunk } : {}),
    ...(onEnd ? { onEnd } : {}),
    ...(close ? { close } : {}),
    watches: made.watches ?? plugin.watches ?? false,
  };
}
