import { allows } from '../wire/patterns.ts';
import { didYouMean } from './problems.ts';

/** What keys and signatures may be given. */
export interface Grantable {
  models: readonly string[];
  /** Alias to id. */
  aliases: ReadonlyMap<string, string>;
  /** Those of an MCP server as `<id>.*`; undefined: nobody can say. */
  tools: readonly string[] | undefined;
}
export interface IdleGrant {
  key: 'models' | 'tools';
  name: string;
  said: string;
  /** What may have been meant; empty when nothing is near. */
  mend: string;
}

/** Names and patterns that give nothing: a slip of the pen, mostly. */
export function idleGrants({ models = [], tools = [] }: { models?: readonly string[]; tools?: readonly string[] }, known: Grantable): IdleGrant[] {
  const idle: IdleGrant[] = [];
  for (const name of models) {
    if (known.models.some((id) => allows([name], id))) continue;
    const id = known.aliases.get(name);
    const mend = id === undefined ? didYouMean(name, known.models) : `, but an alias: keys go by ids, so write \`${id}\``;
    if (name.includes('*')) idle.push({ key: 'models', name, said: `\`${name}\` fits no model of the registry`, mend: '' });
    else idle.push({ key: 'models', name, said: `\`${name}\` is not a model of the registry`, mend });
  }
  if (known.tools === undefined) return idle;
  for (const name of tools) {
    if (name === '*' || isToolKnown(name, known.tools)) continue;
    if (name.includes('*')) idle.push({ key: 'tools', name, said: `\`${name}\` fits no tool`, mend: '' });
    else idle.push({ key: 'tools', name, said: `\`${name}\` is not defined in tools`, mend: didYouMean(name, known.tools) });
  }
  return idle;
}

/** Also as one of an MCP server's, which only that knows. */
export function isToolKnown(name: string, known: Iterable<string>): boolean {
  for (const tool of known) {
    if (allows([tool], name) || allows([name], tool) || (tool.endsWith('.*') && name.startsWith('*'))) return true;
  }
  return false;
}
