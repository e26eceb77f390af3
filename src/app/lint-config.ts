import { readFileSync } from 'node:fs';
import type { Config } from '../contracts/config.ts';
import type { AccessRoom } from '../contracts/rooms.ts';
import { type Finding, lintRules } from '../routing/lint.ts';
import { readLintSource } from '../routing/lint-source.ts';
import type { Registries } from './registries.ts';

/** The rules as they stand in the file now; nothing when it cannot be read, which the reload has told already. */
export function lintConfig(config: Config, matchers: Registries['matchers'], allows: AccessRoom['allows']): Finding[] {
  try {
    const tools = config.tools.map(({ id }) => id);
    return lintRules(readLintSource(readFileSync(config.file, 'utf8'), undefined, tools), matchers, allows);
  } catch {
    return [];
  }
}
