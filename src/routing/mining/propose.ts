import { phrasesOf } from './phrases.ts';

/** A question of recorded traffic, and the rule that takes it now. */
export interface Question {
  text: string;
  /** How often it was asked. */
  count: number;
  /** Undefined: only the default took it. */
  rule: string | undefined;
}
/** A rule's own words: keywords and examples. */
export interface RuleWords {
  id: string;
  texts: readonly string[];
}
export interface MinedKeyword {
  word: string;
  /** Questions of the default that it occurs in, those of an earlier keyword of the list included. */
  questions: number;
  /** Why it goes to this rule; for people. */
  why: string;
}
export interface MinedGroup {
  /** Undefined: no rule is near, so a new one. */
  rule: string | undefined;
  keywords: MinedKeyword[];
}
export interface ProposeOptions {
  /** Questions that a keyword must newly take, at least. */
  least: number;
  /** Groups, at most. */
  most: number;
  /** How alike two texts are, 0 to 1. */
  likeness(a: string, b: string): number;
}

/** Of other questions with the phrase, this share must hit one rule for the phrase to be that rule's. */
const SHARE = 0.6;
/** Likeness to a rule's words from which its phrases belong to it, and the lead that it must have over the next rule. */
const LIKE = 0.35;
const LEAD = 0.05;
/** Questions of a phrase that are compared, and questions of a rule that they are compared with beside its own words. */
const COMPARED = 8;
const KNOWN = 12;
const MOST_KEYWORDS = 8;
/** Overlap of two phrases' questions from which they are one subject. */
const TOGETHER = 0.3;

interface Phrase {
  word: string;
  /** Indexes of the default's questions. */
  where: Set<number>;
}

/** Phrases that would take the most of what only the default took, each for the rule that it is nearest to. */
export function proposeKeywords(questions: readonly Question[], rules: readonly RuleWords[], options: ProposeOptions): MinedGroup[] {
  const caught = questions.filter(({ rule }) => rule === undefined);
  const others = questions.filter(({ rule }) => rule !== undefined);
  const elsewhere = countElsewhere(others);
  const nearest = createNearest(others, rules, options);
  const open = new Set(caught.keys());
  const groups: Collected[] = [];
  const queue = createQueue(withoutFragments(phrasesIn(caught), caught, options.least), (phrase) => gainOf(phrase, caught, open));
  for (let phrase = queue.next(options.least); phrase; phrase = queue.next(options.least)) {
    const target = nearest(phrase, caught, elsewhere.get(phrase.word));
    if (!target) continue;
    const group = groupOf(groups, target.rule, phrase) ?? (groups.length < options.most ? openGroup(groups, target.rule) : undefined);
    if (!group || group.keywords.length >= MOST_KEYWORDS) continue;
    group.keywords.push({ word: phrase.word, questions: weigh(phrase.where, caught), why: target.why });
    for (const index of phrase.where) {
      group.where.add(index);
      open.delete(index);
    }
  }
  return groups.map(({ rule, keywords }) => ({ rule, keywords }));
}

function weigh(where: Iterable<number>, questions: readonly Question[]): number {
  let sum = 0;
  for (const index of where) sum += questions[index]?.count ?? 0;
  return sum;
}

function phrasesIn(questions: readonly Question[]): Map<string, Phrase> {
  const phrases = new Map<string, Phrase>();
  for (const [index, { text }] of questions.entries()) {
    for (const word of phrasesOf(text)) {
      const known = phrases.get(word);
      if (known) known.where.add(index);
      else phrases.set(word, { word, where: new Set([index]) });
    }
  }
  return phrases;
}

/** A piece of a longer phrase that nearly always stands in it says less: `衣机` beside `洗衣机`. */
function withoutFragments(phrases: ReadonlyMap<string, Phrase>, questions: readonly Question[], least: number): Phrase[] {
  const frequent = [...phrases.values()].filter(({ where }) => weigh(where, questions) >= least);
  const fragments = new Set<string>();
  for (const { word, where } of frequent) {
    for (const part of partsOf(word)) {
      const whole = phrases.get(part);
      if (whole && where.size >= 0.9 * whole.where.size) fragments.add(part);
    }
  }
  return frequent.filter(({ word }) => !fragments.has(word));
}
function partsOf(word: string): string[] {
  if (word.includes(' ')) return word.split(' ');
  const characters = [...word];
  return characters.length < 3 || /\p{ASCII}/u.test(word) ? [] : [characters.slice(1).join(''), characters.slice(0, -1).join('')];
}

function gainOf({ where }: Phrase, questions: readonly Question[], open: ReadonlySet<number>): number {
  let gain = 0;
  for (const index of where) if (open.has(index)) gain += questions[index]?.count ?? 0;
  return gain;
}

/**
 * What takes the most of what is still open, again and again; of equals the longer, as it says more. What a phrase takes only
 * shrinks, so a figure of earlier is an upper bound, and few are computed anew.
 */
function createQueue(phrases: readonly Phrase[], gain: (phrase: Phrase) => number): { next(least: number): Phrase | undefined } {
  const ascending = phrases.map((phrase) => ({ phrase, gain: gain(phrase) })).sort((a, b) => a.gain - b.gain || a.phrase.word.length - b.phrase.word.length);
  return {
    next(least) {
      for (let top = ascending.pop(); top && top.gain >= least; top = ascending.pop()) {
        const now = gain(top.phrase);
        if (now === top.gain || now >= (ascending.at(-1)?.gain ?? 0)) return now >= least ? top.phrase : undefined;
        let [low, high] = [0, ascending.length];
        while (low < high) {
          const middle = (low + high) >> 1;
          if ((ascending[middle]?.gain ?? 0) <= now) low = middle + 1;
          else high = middle;
        }
        ascending.splice(low, 0, { phrase: top.phrase, gain: now });
      }
      return undefined;
    },
  };
}

/** By phrase: how often it occurs in questions that a rule takes, by rule. */
function countElsewhere(others: readonly Question[]): Map<string, Map<string, number>> {
  const counts = new Map<string, Map<string, number>>();
  for (const { text, count, rule } of others) {
    for (const word of phrasesOf(text)) {
      const byRule = counts.get(word) ?? new Map<string, number>();
      byRule.set(rule as string, (byRule.get(rule as string) ?? 0) + count);
      counts.set(word, byRule);
    }
  }
  return counts;
}

type Nearest = (
  phrase: Phrase,
  caught: readonly Question[],
  elsewhere: ReadonlyMap<string, number> | undefined,
) => { rule: string | undefined; why: string } | undefined;

/** The rule that a phrase would feed. Undefined: it stands in questions of several rules, and tells nothing. */
function createNearest(others: readonly Question[], rules: readonly RuleWords[], { likeness }: ProposeOptions): Nearest {
  const known = rules.map(({ id, texts }) => ({
    id,
    texts: [...texts, ...others.filter(({ rule }) => rule === id).map(({ text }) => text)].slice(0, texts.length + KNOWN),
  }));
  return ({ where }, caught, elsewhere) => {
    const counts = [...(elsewhere ?? [])].sort((a, b) => b[1] - a[1]);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    const [rule, most] = counts[0] ?? [undefined, 0];
    if (total >= 2 && most >= SHARE * total) return { rule, why: `${most} of ${total} other questions with it hit ${rule}` };
    if (total > weigh(where, caught)) return undefined;
    const asked = [...where].slice(0, COMPARED).map((index) => caught[index]?.text ?? '');
    const scored = known
      .map(({ id, texts }) => ({ id, score: mean(asked.map((text) => Math.max(0, ...texts.map((other) => likeness(text, other))))) }))
      .sort((a, b) => b.score - a.score);
    const [first, second] = scored;
    if (first && first.score >= LIKE && first.score - (second?.score ?? 0) >= LEAD) {
      return { rule: first.id, why: `its questions are like those of ${first.id} (${first.score.toFixed(2)})` };
    }
    return { rule: undefined, why: 'no rule is near' };
  };
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

interface Collected extends MinedGroup {
  where: Set<number>;
}

/** Of a rule the one group; of what no rule is near, that of the same questions. */
function groupOf(groups: readonly Collected[], rule: string | undefined, { where }: Phrase): Collected | undefined {
  const overlaps = (others: ReadonlySet<number>) => [...where].filter((index) => others.has(index)).length >= TOGETHER * Math.min(others.size, where.size);
  return groups.find((group) => group.rule === rule && (rule !== undefined || overlaps(group.where)));
}
function openGroup(groups: Collected[], rule: string | undefined): Collected {
  const made: Collected = { rule, keywords: [], where: new Set() };
  groups.push(made);
  return made;
}
