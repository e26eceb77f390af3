import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Matcher } from '../contracts/matcher.ts';
import { type Finding, lintRules } from '../routing/lint.ts';
import { readLintSource } from '../routing/lint-source.ts';
import { allows } from '../wire/patterns.ts';
import { CommandFailed } from './command-failed.ts';

/** What plugins add to what the file's rules may name. */
export interface Added {
  matchers: ReadonlyMap<string, Matcher>;
  tools: readonly string[];
}

/** What lint finds in a configuration's rules, however wrong the rest of the file is. `tests` defaults to `route_tests.yaml` beside it. */
export function lintFile(file: string, added: Added, tests = join(dirname(file), 'route_tests.yaml')): Finding[] {
  return lintRules(readLintSource(readText(file), existsSync(tests) ? readText(tests) : undefined, added.tools), added.matchers, allows);
}

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read`, { cause });
  }
}
