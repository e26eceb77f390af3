import type { Config, KeyConfig } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import { withDefaults } from './environment.ts';
import { idleGrants } from './grants.ts';
import { reportIssues, toMessage } from './issues.ts';
import { key } from './schema-access.ts';

/** What an entry of `auth.keys` may say, but for where the key comes from. */
const schema = key.omit({ key_env: true, sha256: true });

/** A key to be added at run time, with the defaults of `auth.keys`. Throws `invalid_value` with every mistake. */
export function parseRunTimeKey(body: unknown): KeyConfig {
  const parsed = schema.safeParse(body ?? {}, { error: toMessage });
  if (parsed.success) return withDefaults(parsed.data);
  const mistakes: string[] = [];
  let param: string | undefined;
  reportIssues(parsed.error.issues, (path, message) => {
    param ??= path.join('.');
    mistakes.push(`${path.join('.') || 'the body'} ${message}`);
  });
  throw new HermesError('invalid_value', `The key is not one: ${mistakes.join('; ')}.`, { param: param || null });
}

/** What of a key allows nothing. `tools`: all that there are; undefined: nobody can say. */
export function idleGrantsOf(key: KeyConfig, { registry, tool_sources }: Config, tools: readonly string[] | undefined): string[] {
  const models = [...registry.models.values()];
  const aliases = new Map(models.flatMap(({ id, aliases: others }) => others.map((alias): [string, string] => [alias, id])));
  // A server that is away has tools, too.
  const all = tools && [...tools, ...tool_sources.map(({ id }) => `${id}.*`)];
  return idleGrants(key, { models: models.map(({ id }) => id), aliases, tools: all }).map(({ key: member, said, mend }) => `${member}: ${said}${mend}`);
}
