import { RE2JS } from 're2js';
import type { GuardConfig, RedactRule } from '../contracts/guards.ts';
import { TextRules, type WordFinder } from './rules.ts';
import type { Span } from './span.ts';
import { TextWindow } from './text-window.ts';
import { Vault } from './vault.ts';
import { changeTexts } from './walk.ts';

/** Takes what the rules name out of every text within a value; nothing comes back. The same value has the same placeholder throughout. */
export function createRedactor(rules: readonly RedactRule[], createWordFinder: (words: readonly string[]) => WordFinder): (content: unknown) => unknown {
  const patterns = rules.flatMap((rule) =>
    rule.regex === undefined ? [] : [{ guard: toGuard(rule), finder: createPatternFinder(rule.regex), kind: 'pattern' }],
  );
  const text = new TextRules(rules.filter(({ regex }) => regex === undefined).map(toGuard), createWordFinder, patterns);
  if (text.empty) return (content) => content;
  return (content) => {
    const vault = new Vault();
    const replace = (hit: { kind: string }, value: string): string => vault.mask(hit.kind, value);
    return changeTexts(content, (said, json) => new TextWindow({ rules: text, vault: NOTHING, json, onHit: () => undefined, replace }).push(said, true));
  };
}

/** Values never come back from a trace. */
const NOTHING = new Vault();

function toGuard({ kind, detect, words }: RedactRule): GuardConfig {
  // What a pattern finds is found by its finder; to the rules it is a list of words.
  return { id: kind, kind: kind === 'pattern' ? 'block_list' : kind, action: 'redact', apply: [], detect, words, timeout_ms: 0, on_error: 'block' };
}

/** RE2: in linear time, whatever the expression and the text are. */
function createPatternFinder(regex: string): WordFinder {
  const compiled = RE2JS.compile(regex);
  return (text) => {
    const found: Span[] = [];
    const matcher = compiled.matcher(text);
    while (matcher.find()) if (matcher.end() > matcher.start()) found.push({ start: matcher.start(), end: matcher.end() });
    return { found, open: text.length };
  };
}
