import type { Config } from '../contracts/config.ts';
import type { Detection, GuardConfig, GuardDirection } from '../contracts/guards.ts';
import { fold } from './fold.ts';
import { openIban, openNumber, openPrivateKey, openWord } from './open-end.ts';
import { findCards, findCnIds, findEmails, findIbans, findPhones } from './personal-data.ts';
import { findApiKeys, findJwts, findPrivateKeys } from './secrets.ts';
import type { Span } from './span.ts';

export type WordFinder = (text: string) => { found: Span[]; open: number };

interface FoundWords {
  guard: GuardConfig;
  finder: WordFinder;
  /** Names its placeholders. */
  kind: string;
}

/** Something that a guard looks for stands here. */
export interface Hit extends Span {
  /** Names its placeholder. */
  kind: string;
  guard: GuardConfig;
}

interface Detector {
  /** Without it there is nothing to find: most pieces of a stream are a word without digits. */
  needs: RegExp;
  find(folded: string): Span[];
  open(folded: string): number;
}
const DIGIT = /\d/;
const LONG_WORD = /[A-Za-z0-9_.-]{16}/;
const DETECTORS: Readonly<Record<Detection, Detector>> = {
  card: { needs: DIGIT, find: findCards, open: openNumber },
  phone: { needs: DIGIT, find: findPhones, open: openNumber },
  cn_id: { needs: DIGIT, find: findCnIds, open: openNumber },
  iban: { needs: DIGIT, find: findIbans, open: openIban },
  email: { needs: /@/, find: findEmails, open: openWord },
  api_key: { needs: LONG_WORD, find: findApiKeys, open: openWord },
  jwt: { needs: LONG_WORD, find: findJwts, open: openWord },
  private_key: { needs: /-----BEGIN/, find: findPrivateKeys, open: openPrivateKey },
};
/** In this order: what is found first names the placeholder. */
const OF_KIND: Readonly<Record<string, readonly Detection[]>> = {
  pii: ['cn_id', 'card', 'iban', 'phone', 'email'],
  secrets: ['private_key', 'jwt', 'api_key'],
};

/** The guards of one direction that look at text, compiled. */
export class TextRules {
  readonly guards: readonly GuardConfig[];
  readonly #detectors: (Pick<Detector, 'needs' | 'find'> & { guard: GuardConfig; kind: string })[] = [];
  readonly #opens: readonly Detector['open'][];
  readonly #words: FoundWords[] = [];

  /** `more`: what others find. */
  constructor(guards: readonly GuardConfig[], createWordFinder: (words: readonly string[]) => WordFinder, more: readonly FoundWords[] = []) {
    this.guards = guards;
    this.#words.push(...more);
    const opens = new Set<Detector['open']>();
    for (const guard of guards) {
      for (const kind of OF_KIND[guard.kind] ?? []) {
        if (guard.detect && !guard.detect.includes(kind)) continue;
        const { needs, find, open } = DETECTORS[kind];
        this.#detectors.push({ guard, kind, needs, find });
        opens.add(open);
      }
      if (guard.kind === 'block_list') this.#words.push({ guard, finder: createWordFinder(guard.words ?? []), kind: 'word' });
    }
    this.#opens = [...opens];
  }

  get empty(): boolean {
    return this.#detectors.length === 0 && this.#words.length === 0;
  }
  /** Something may be taken out of the text. */
  get changes(): boolean {
    return this.guards.some(({ action }) => action !== 'flag');
  }

  /** All that is found, and from where on the text is undecided when it goes on. */
  look(text: string): { hits: Hit[]; open: number } {
    const hits: Hit[] = [];
    let open = text.length;
    if (this.#detectors.length > 0) {
      const folded = fold(text);
      for (const { guard, kind, needs, find } of this.#detectors) {
        if (needs.test(folded)) for (const span of find(folded)) hits.push({ ...span, kind, guard });
      }
      for (const opens of this.#opens) open = Math.min(open, opens(folded));
    }
    for (const { guard, finder, kind } of this.#words) {
      const words = finder(text);
      for (const span of words.found) hits.push({ ...span, kind, guard });
      open = Math.min(open, words.open);
    }
    return { hits, open };
  }
}

/** A generation's guards, by what they do. */
export interface GuardSet {
  input: TextRules;
  output: TextRules;
  webhooks: Readonly<Record<GuardDirection, readonly GuardConfig[]>>;
  promptSizes: readonly GuardConfig[];
  outputSizes: readonly GuardConfig[];
}

const ON_TEXT: ReadonlySet<string> = new Set(['pii', 'secrets', 'block_list']);

export function compileGuards({ guards }: Config, createWordFinder: (words: readonly string[]) => WordFinder): GuardSet {
  const of = (direction: GuardDirection, isKind: (kind: string) => boolean) => guards.filter(({ kind, apply }) => isKind(kind) && apply.includes(direction));
  const rules = (direction: GuardDirection) =>
    new TextRules(
      of(direction, (kind) => ON_TEXT.has(kind)),
      createWordFinder,
    );
  const webhooks = (direction: GuardDirection) => of(direction, (kind) => kind === 'webhook');
  return {
    input: rules('input'),
    output: rules('output'),
    webhooks: { input: webhooks('input'), output: webhooks('output') },
    promptSizes: guards.filter(({ kind }) => kind === 'prompt_size'),
    outputSizes: guards.filter(({ kind }) => kind === 'output_size'),
  };
}
