import type { LoadedPlugin, Place } from './load-plugins.ts';

/** Where a plugin that says nothing stands: right after limits, before the session is recalled. */
const DEFAULT_PLACE = 'limits';

/**
 * Puts plugins in their order. Hermes' own chain by their `after`; each of the user's goes right after (or before) what it
 * names, those at the same place in the order of their files. `explicit` (pipeline.order) then rearranges the named ones.
 * Throws an Error that names the plugin and the known names.
 */
export function orderPlugins(plugins: readonly LoadedPlugin[], explicit: readonly string[] = []): LoadedPlugin[] {
  const ordered: LoadedPlugin[] = [];
  const names = plugins.map(({ plugin }) => plugin.name);
  for (const { plugin, file } of plugins) checkNames(file ? `plugin file ${file}` : plugin.name, [...list(plugin.after), ...list(plugin.before)], names);
  checkNames('pipeline.order', explicit, names);
  let waiting = [...plugins.filter(({ file, replaces }) => !file || replaces), ...plugins.filter(({ file, replaces }) => file && !replaces)];
  while (waiting.length > 0) {
    const ready = waiting.find((candidate) => anchors(candidate).every((name) => ordered.some(({ plugin }) => plugin.name === name)));
    if (!ready) throw new Error(`the plugins ${waiting.map(({ plugin }) => plugin.name).join(', ')} ask to stand before or after each other in a circle`);
    place(ordered, ready);
    waiting = waiting.filter((other) => other !== ready);
  }
  for (const loaded of plugins) if (loaded.stood) move(ordered, loaded);
  return rearrange(ordered, explicit);
}

function list(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : [value].flat();
}

function anchors({ plugin, file, replaces, stood = plugin }: LoadedPlugin): string[] {
  const named = [...list(stood.after), ...list(stood.before)];
  return named.length === 0 && file && !replaces ? [DEFAULT_PLACE] : named;
}

function checkNames(who: string, wanted: readonly string[], known: readonly string[]): void {
  for (const name of wanted)
    if (!known.includes(name)) throw new Error(`${who} names the plugin "${name}", which does not exist; there are ${known.join(', ')}`);
}

/** From where the one stood that it replaces to where it wants to stand. */
function move(ordered: LoadedPlugin[], loaded: LoadedPlugin): void {
  ordered.splice(ordered.indexOf(loaded), 1);
  place(ordered, loaded, loaded.plugin);
}

function place(ordered: LoadedPlugin[], loaded: LoadedPlugin, wanted: Place = loaded.stood ?? loaded.plugin): void {
  const { plugin, file, replaces } = loaded;
  const at = (name: string): number => ordered.findIndex((other) => other.plugin.name === name);
  const after = list(wanted.after).map(at);
  const before = list(wanted.before).map(at);
  if (after.length === 0 && before.length === 0) {
    if (!file || replaces) ordered.push(loaded);
    else ordered.splice(endOfGroup(ordered, at(DEFAULT_PLACE)), 0, loaded);
    return;
  }
  const lowest = Math.max(-1, ...after) + 1;
  const highest = Math.min(ordered.length, ...before);
  if (lowest > highest)
    throw new Error(`the plugin "${plugin.name}" cannot stand after ${list(plugin.after).join(', ')} and before ${list(plugin.before).join(', ')}`);
  ordered.splice(after.length > 0 ? Math.min(highest, endOfGroup(ordered, lowest - 1)) : highest, 0, loaded);
}

/** The place after `anchor` and after those of the user's that already stand right behind it. */
function endOfGroup(ordered: readonly LoadedPlugin[], anchor: number): number {
  let place = anchor + 1;
  while (ordered[place]?.file !== undefined && !ordered[place]?.replaces) place++;
  return place;
}

function rearrange(ordered: LoadedPlugin[], explicit: readonly string[]): LoadedPlugin[] {
  const places = ordered.flatMap(({ plugin }, index) => (explicit.includes(plugin.name) ? [index] : []));
  const wanted = explicit.map((name) => ordered.find(({ plugin }) => plugin.name === name));
  const result = [...ordered];
  for (const [index, position] of places.entries()) {
    const plugin = wanted[index];
    if (plugin) result[position] = plugin;
  }
  return result;
}
