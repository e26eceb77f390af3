import { RE2JS } from 're2js';
import { isRecord } from '../wire/json.ts';
import type { Path } from './problems.ts';
import { MATCHERS } from './schema-routing.ts';
import type { MissingName } from './unless-added.ts';

type Report = (path: Path, message: string) => void;
interface MatchFindings {
  report: Report;
  unlessAdded(path: Path, missing: MissingName): void;
}

/** What a schema cannot say of a `match`: unknown keys (there are custom matchers), expressions that do not compile, conditions that are empty. */
export function checkMatch(match: unknown, path: Path, customMatchers: readonly string[], findings: MatchFindings): void {
  const { report } = findings;
  if (typeof match === 'string') checkExpression(match, 'i', path, report);
  if (!isRecord(match)) return;
  const known = [...new Set([...MATCHERS, ...customMatchers])];
  const keys = Object.keys(match);
  if (keys.length === 0) report(path, 'is empty: a rule for every message is `match: .*`');
  for (const key of keys) {
    if (!known.includes(key)) findings.unlessAdded([...path, key], { kind: 'matcher', name: key, said: 'is not a matcher', known });
  }
  if (match.require_all !== undefined && match.keywords === undefined && !keys.some((key) => !known.includes(key))) {
    report([...path, 'require_all'], 'belongs to `keywords`, which is missing');
  }
  const regex = match.regex;
  if (typeof regex === 'string') checkExpression(regex, 'i', [...path, 'regex'], report);
  else if (isRecord(regex) && typeof regex.pattern === 'string') {
    checkExpression(regex.pattern, typeof regex.flags === 'string' ? regex.flags : 'i', [...path, 'regex', 'pattern'], report);
  }
  for (const key of ['any', 'all']) {
    const list = match[key];
    if (Array.isArray(list)) for (const [index, inner] of list.entries()) checkMatch(inner, [...path, key, index], customMatchers, findings);
  }
  if (match.not !== undefined) checkMatch(match.not, [...path, 'not'], customMatchers, findings);
}

function checkExpression(pattern: string, flags: string, path: Path, report: Report): void {
  let bits = 0;
  if (flags.includes('i')) bits |= RE2JS.CASE_INSENSITIVE;
  if (flags.includes('m')) bits |= RE2JS.MULTILINE;
  if (flags.includes('s')) bits |= RE2JS.DOTALL;
  try {
    RE2JS.compile(pattern, bits);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /i, '') : 'it does not compile';
    report(path, `is not a regular expression that runs in linear time (RE2): ${reason}`);
  }
}

/** Does a `match` use this matcher anywhere inside? */
export function usesMatcher(match: unknown, name: string): boolean {
  if (!isRecord(match)) return false;
  if (match[name] !== undefined) return true;
  const nested = [match.any, match.all, [match.not]].flatMap((list) => (Array.isArray(list) ? list : []));
  return nested.some((inner) => usesMatcher(inner, name));
}
