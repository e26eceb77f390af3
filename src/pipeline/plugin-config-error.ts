import { isRecord } from '../wire/json.ts';

/** What the configuration says of a plugin and cannot be. */
export interface PluginConfigMistake {
  /** In the configuration: `plugins`, the plugin's name, and on. */
  path: (string | number)[];
  message: string;
  /** There is nothing of that name among these. */
  unknown?: { name: string; known: readonly string[] };
}

/** Every mistake at once; whoever knows the file tells where they stand. */
export class PluginConfigError extends Error {
  readonly mistakes: readonly PluginConfigMistake[];

  constructor(mistakes: readonly PluginConfigMistake[]) {
    const lines = mistakes.map(({ path, message, unknown }) => `${path.join('.')}: ${message}${unknown ? `; there are ${unknown.known.join(', ')}` : ''}`);
    super(lines.join('\n'));
    this.name = 'PluginConfigError';
    this.mistakes = mistakes;
  }
}

/** What a plugin's `config.parse` threw: zod and its like list issues, others say one thing. */
export function toMistakes(name: string, thrown: unknown): PluginConfigMistake[] {
  const path = ['plugins', name];
  const issues: unknown[] = isRecord(thrown) && Array.isArray(thrown.issues) ? thrown.issues : [];
  const mistakes = issues.flatMap((issue) => (isRecord(issue) && typeof issue.message === 'string' ? toMistake(path, issue, issue.message) : []));
  return mistakes.length > 0 ? mistakes : [{ path, message: thrown instanceof Error ? thrown.message : String(thrown) }];
}

function toMistake(base: readonly string[], issue: Record<string, unknown>, message: string): PluginConfigMistake[] {
  const inner: unknown[] = Array.isArray(issue.path) ? issue.path : [];
  const path = [...base, ...inner.filter((part) => typeof part === 'string' || typeof part === 'number')];
  // zod places an unknown key at the block around it.
  const keys: unknown[] = issue.code === 'unrecognized_keys' && Array.isArray(issue.keys) ? issue.keys : [];
  return keys.length > 0 ? keys.map((key) => ({ path: [...path, String(key)], message: 'is not known here' })) : [{ path, message }];
}
