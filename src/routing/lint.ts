import type { Condition, Matcher } from '../contracts/matcher.ts';
import { compileMatch, RefusedCondition, UnknownMatcher } from './compile-match.ts';
import { KeywordAutomaton, normaliseKeyword } from './keyword-automaton.ts';
import { MatchComparer, type MatchNode } from './lint-match.ts';
import { nearestName } from './suggest.ts';

/** A rule as it stands in a file that need not be right. */
export interface LintRule {
  id: string;
  match: unknown;
  model: string | undefined;
  tools: readonly string[];
  /** From 1; undefined when unknown. */
  line: number | undefined;
}
export interface LintSource {
  rules: readonly LintRule[];
  /** Ids, aliases and upstream names; undefined: the file does not say, so models are not checked. */
  models: ReadonlySet<string> | undefined;
  tools: ReadonlySet<string>;
  /** One list of patterns a key; undefined: some key may use every tool. */
  keyTools: readonly (readonly string[])[] | undefined;
  /** Rules that have test questions; undefined: there is no test file. */
  tested: ReadonlySet<string> | undefined;
}
export type LintCode =
  | 'unreachable'
  | 'unknown-model'
  | 'unknown-matcher'
  | 'broken'
  | 'never'
  | 'duplicate-id'
  | 'shadowed'
  | 'duplicate'
  | 'overlap'
  | 'no-catch-all'
  | 'short-keyword'
  | 'unknown-tool'
  | 'forbidden-tool'
  | 'untested';
export interface Finding {
  level: 'error' | 'warning';
  code: LintCode;
  /** '' when it is about the rules as a whole. */
  rule: string;
  line: number | undefined;
  message: string;
}
interface Read {
  rule: LintRule;
  node: MatchNode | undefined;
  always: boolean;
}
type Allows = (patterns: readonly string[], name: string) => boolean;

/** What is wrong with a list of rules, or will be one day. In the order of the rules. */
export function lintRules(source: LintSource, matchers: ReadonlyMap<string, Matcher>, allows: Allows): Finding[] {
  const findings: Finding[] = [];
  const comparer = new MatchComparer();
  const earlier = new EarlierRules(comparer);
  const ids = new Set<string>();
  const reads = source.rules.map((rule) => read(rule, matchers, comparer, findings));
  for (const current of reads) {
    const { rule } = current;
    const report = reporter(findings, rule);
    if (ids.has(rule.id)) report('error', 'duplicate-id', `there is a rule ${rule.id} above; each needs an id of its own`);
    checkNames(source, rule, allows, report);
    checkKeywords(rule.match, report);
    if (current.node) checkEarlier(current.node, earlier, comparer, report);
    ids.add(rule.id);
    earlier.add(current);
  }
  if (reads.length > 0 && !reads.some(({ always }) => always)) {
    const message = "there is no catch-all: what no rule hits goes to default_model without tools; end the rules with one that has match: '.*'";
    findings.push({ level: 'warning', code: 'no-catch-all', rule: '', line: undefined, message });
  }
  if (!source.tested && reads.length > 0) {
    findings.push({
      level: 'warning',
      code: 'untested',
      rule: '',
      line: undefined,
      message: 'no rule is tested: there is no route_tests.yaml beside the configuration',
    });
  }
  return findings;
}

type Report = (level: Finding['level'], code: LintCode, message: string) => void;
function reporter(findings: Finding[], rule: LintRule): Report {
  return (level, code, message) => findings.push({ level, code, rule: rule.id, line: rule.line, message });
}

function read(rule: LintRule, matchers: ReadonlyMap<string, Matcher>, comparer: MatchComparer, findings: Finding[]): Read {
  const report = reporter(findings, rule);
  const automaton = new KeywordAutomaton();
  let condition: Condition;
  try {
    condition = compileMatch(rule.match, matchers, {
      ruleId: rule.id,
      timezone: 'UTC',
      keyword: (word) => automaton.add(word),
      resembles: () => async () => undefined,
    });
  } catch (thrown) {
    const unknown = thrown instanceof RefusedCondition && thrown.cause instanceof UnknownMatcher;
    report('error', unknown ? 'unknown-matcher' : 'broken', thrown instanceof Error ? thrown.message : 'its match cannot be read');
    return { rule, node: undefined, always: false };
  }
  if (condition.never !== undefined) report('error', 'never', `it can never hit: ${condition.never}`);
  return { rule, node: comparer.read(rule.match, condition.always ?? false), always: condition.always ?? false };
}

/** Rules above, by what they could take away. */
class EarlierRules {
  /** The first that everything hits. */
  catchAll: Read | undefined;
  readonly #comparer: MatchComparer;
  readonly #byKeyword = new Map<number, Read[]>();
  /** That speak of more than keywords. */
  readonly #others: Read[] = [];
  readonly #order = new Map<Read, number>();

  constructor(comparer: MatchComparer) {
    this.#comparer = comparer;
  }

  add(read: Read): void {
    this.#order.set(read, this.#order.size);
    if (read.always) this.catchAll ??= read;
    if (!read.node) return;
    const { ids, only } = this.#comparer.keywordsOf(read.node);
    if (!only) this.#others.push(read);
    else for (const id of ids) this.#byKeyword.set(id, [...(this.#byKeyword.get(id) ?? []), read]);
  }

  /** The first that hits whatever the node hits. */
  wider(node: MatchNode): Read | undefined {
    const candidates = new Set(this.#others);
    for (const id of this.#comparer.closure(this.#comparer.keywordsOf(node).ids)) for (const read of this.#byKeyword.get(id) ?? []) candidates.add(read);
    return [...candidates]
      .sort((a, b) => (this.#order.get(a) ?? 0) - (this.#order.get(b) ?? 0))
      .find((read) => read.node && this.#comparer.implies(node, read.node));
  }
}

function checkEarlier(node: MatchNode, earlier: EarlierRules, comparer: MatchComparer, report: Report): void {
  const { catchAll } = earlier;
  if (catchAll) {
    report('error', 'unreachable', `it can never be reached: ${named(catchAll.rule)} above hits everything; move it after this rule`);
    return;
  }
  const wider = earlier.wider(node);
  if (wider) {
    const same = wider.node && comparer.implies(wider.node, node);
    if (same) report('warning', 'duplicate', `it asks for the same as ${named(wider.rule)} above, which hits first`);
    else report('warning', 'shadowed', `it is shadowed by ${named(wider.rule)} above: whatever it hits, ${wider.rule.id} hits first`);
    return;
  }
  if (node.kind !== 'any') return;
  for (const part of node.parts) {
    const caught = part.kind === 'keyword' ? earlier.wider(part) : undefined;
    if (caught && part.kind === 'keyword') report('warning', 'overlap', `its keyword ${part.word} never counts: ${named(caught.rule)} above hits it first`);
  }
}

function named({ id, line }: LintRule): string {
  return line === undefined ? id : `${id} (line ${line})`;
}

function checkNames(source: LintSource, rule: LintRule, allows: Allows, report: Report): void {
  if (rule.model === undefined) report('error', 'unknown-model', 'it names no model');
  else if (source.models && rule.model !== 'default_model' && !rule.model.includes('${') && !source.models.has(rule.model)) {
    const nearest = nearestName(rule.model, source.models);
    report('error', 'unknown-model', `there is no model ${rule.model}${nearest ? `; did you mean ${nearest}?` : ''}`);
  }
  for (const tool of rule.tools) {
    if (!source.tools.has(tool) && ![...source.tools].some((known) => allows([known], tool) || allows([tool], known))) {
      const nearest = nearestName(tool, source.tools);
      report('warning', 'unknown-tool', `nothing defines the tool ${tool}${nearest ? `; did you mean ${nearest}?` : ''}`);
    } else if (source.keyTools && !source.keyTools.some((patterns) => allows(patterns, tool))) {
      report('warning', 'forbidden-tool', `no key may use its tool ${tool}`);
    }
  }
  if (source.tested && !source.tested.has(rule.id)) report('warning', 'untested', 'it has no question in route_tests.yaml');
}

function checkKeywords(match: unknown, report: Report): void {
  if (typeof match !== 'object' || match === null) return;
  for (const [key, value] of Object.entries(match)) {
    const list: unknown[] = Array.isArray(value) ? value : [value];
    if (key !== 'keywords') {
      if (key === 'any' || key === 'all' || key === 'not') for (const part of list) checkKeywords(part, report);
      continue;
    }
    for (const word of list) {
      if ([...normaliseKeyword(String(word))].length === 1)
        report('warning', 'short-keyword', `its keyword ${String(word)} has one character: it hits in many words that mean something else`);
    }
  }
}
