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
  message: string;
}

/** Names and patterns that give nothing: a slip of the pen, mostly. */
export function idleGrants({ models = [], tools = [] }: { models?: readonly string[]; tools?: readonly string[] }, known: Grantable): IdleGrant[] {
  const idle: IdleGrant[] = [];
  for (const name of models) {
    if (known.models.some((id) => allows([name], id))) continue;
    const id = known.aliases.get(name);
    const mend = id === undefined ? didYouMean(name, known.models) : `, but an alias: keys go by ids, so write \`${id}\``;
    idle.push({
      key: 'models',
      message: name.includes('*') ? `\`${name}\` fits no model of the registry` : `\`${name}\` is not a model of the registry${mend}`,
    });
  }
  if (known.tools === undefined) return idle;
  for (const name of tools) {
    if (name === '*' || isToolKnown(name, known.tools)) continue;
    const message = name.includes('*') ? `\`${name}\` fits no tool` : `\`${name}\` is not defined in tools${didYouMean(name, known.tools)}`;
    idle.push({ key: 'tools', message });
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
