import type { Resemblance, Verdict } from '../../contracts/matcher.ts';
import { defineMatcher } from '../../contracts/matcher.ts';
import { readTexts } from './conditions/simple.ts';

/**
 * By meaning: the mean of the `top_k` (1) nearest examples is at least `min_score` (0.75) and, when `min_margin` is set,
 * that much above the nearest other rule's. The service down or slow: the rule is skipped.
 */
export default defineMatcher({
  compile(value, context) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('embedding takes { examples, top_k, min_score, min_margin }');
    const settings = new Map<string, unknown>(Object.entries(value));
    const unknown = [...settings.keys()].find((key) => !['examples', 'top_k', 'min_score', 'min_margin'].includes(key));
    if (unknown !== undefined) throw new Error(`embedding has no ${JSON.stringify(unknown)}; there are examples, top_k, min_score, min_margin`);
    const examples = readTexts(settings.get('examples') ?? [], 'examples').filter((example) => example.trim() !== '');
    if (examples.length === 0) return { never: 'embedding has no examples', hits: () => false, test: () => ({ hit: false, why: 'embedding has no examples' }) };
    const topK = readNumber(settings.get('top_k') ?? 1, 'top_k', 1, Number.POSITIVE_INFINITY);
    const minScore = readNumber(settings.get('min_score') ?? 0.75, 'min_score', -1, 1);
    const margin = settings.get('min_margin');
    const minMargin = margin === undefined || margin === null ? undefined : readNumber(margin, 'min_margin', 0, 2);
    const ask = context.resembles(examples, Math.min(Math.floor(topK), examples.length));
    return {
      waits: true,
      test: (input) => {
        if (input.text.trim() === '') return { hit: false, why: 'the newest user message has no text' };
        const answer = ask(input);
        return answer instanceof Promise ? answer.then((resemblance) => judge(resemblance, minScore, minMargin)) : judge(answer, minScore, minMargin);
      },
    };
  },
});

function judge(resemblance: Resemblance | undefined, minScore: number, minMargin: number | undefined): Verdict {
  if (!resemblance) return { hit: false, unknown: true, why: 'skipped: the embedding service gave no answer' };
  return new Judged(resemblance, minScore, minMargin);
}

/** The reason, and the score in it, are made only for who wants to read them: a live decision does not. */
class Judged implements Verdict {
  readonly hit: boolean;
  readonly #resemblance: Resemblance;
  readonly #minScore: number;
  readonly #minMargin: number | undefined;
  /** Of the nearest other rule, when that was near enough to matter. */
  readonly #next: number | undefined;

  constructor(resemblance: Resemblance, minScore: number, minMargin: number | undefined) {
    const near = resemblance.reaches(minScore);
    this.#resemblance = resemblance;
    this.#minScore = minScore;
    this.#minMargin = minMargin;
    this.#next = near && minMargin !== undefined ? resemblance.next : undefined;
    this.hit = near && (minMargin === undefined || this.#next === undefined || resemblance.score - this.#next >= minMargin);
  }

  get score(): number {
    return this.#resemblance.score;
  }
  get why(): string {
    const words = `embedding score ${this.score.toFixed(3)}`;
    if (this.hit) return `${words} is at least min_score ${this.#minScore}`;
    if (this.#next === undefined) return `${words} is below min_score ${this.#minScore}`;
    return `${words} is less than min_margin ${this.#minMargin} above the next rule's ${this.#next.toFixed(3)}`;
  }
}

function readNumber(value: unknown, key: string, from: number, to: number): number {
  if (typeof value === 'number' && value >= from && value <= to) return value;
  throw new Error(
    `${key} takes a number${to === Number.POSITIVE_INFINITY ? ` of at least ${from}` : ` from ${from} to ${to}`}, not ${JSON.stringify(value) ?? 'nothing'}`,
  );
}
