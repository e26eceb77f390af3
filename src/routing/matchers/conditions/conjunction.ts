import type { Condition, KeywordProbe, RouteInput, Verdict } from '../../../contracts/matcher.ts';

/** All must hold. What must wait (embedding) is asked last, and only when the rest holds. */
export function conjunction(parts: readonly Condition[]): Condition {
  const only = parts[0];
  if (parts.length === 1 && only) return only;
  const quick = parts.filter((part) => !part.waits);
  const waiting = parts.filter((part) => part.waits);
  const traits = conjunctionTraits(parts);
  if (waiting.length === 0 && quick.every((part) => part.hits)) {
    return { ...traits, hits: (input) => quick.every((part) => part.hits?.(input)), test: (input) => testAll(quick, input) };
  }
  const ordered = [...quick, ...waiting];
  return { ...traits, waits: waiting.length > 0, test: (input) => testAll(ordered, input) };
}

function conjunctionTraits(parts: readonly Condition[]): Pick<Condition, 'always' | 'never' | 'needs'> {
  const never = parts.find((part) => part.never)?.never;
  const needs = parts
    .map((part) => part.needs)
    .filter((list): list is readonly KeywordProbe[] => list !== undefined)
    .sort((a, b) => a.length - b.length)[0];
  return {
    ...(parts.every((part) => part.always) && { always: true }),
    ...(never !== undefined && { never }),
    ...(needs && { needs }),
  };
}

/** Every quick part is asked, so that a miss names all its reasons; a waiting one only while all hold. */
function testAll(parts: readonly Condition[], input: RouteInput, from = 0, heard: readonly Verdict[] = []): Verdict | Promise<Verdict> {
  const verdicts = [...heard];
  for (let index = from; index < parts.length; index++) {
    const part = parts[index] as Condition;
    if (part.waits && verdicts.some((verdict) => !verdict.hit)) break;
    const verdict = part.test(input);
    if (verdict instanceof Promise) return verdict.then((settled) => testAll(parts, input, index + 1, [...verdicts, settled]));
    verdicts.push(verdict);
  }
  const misses = verdicts.filter((verdict) => !verdict.hit);
  return merge(misses.length === 0, misses.length === 0 ? verdicts : misses, ' and ');
}

/** One verdict of several, with all their words; made when somebody reads them. */
export function merge(hit: boolean, verdicts: readonly Verdict[], joint: string): Verdict {
  return new Merged(hit, verdicts, joint);
}

class Merged implements Verdict {
  readonly hit: boolean;
  readonly unknown: boolean;
  readonly #verdicts: readonly Verdict[];
  readonly #joint: string;

  constructor(hit: boolean, verdicts: readonly Verdict[], joint: string) {
    this.hit = hit;
    this.unknown = !hit && verdicts.some((verdict) => verdict.unknown);
    this.#verdicts = verdicts;
    this.#joint = joint;
  }

  get why(): string {
    return this.#verdicts.map((verdict) => verdict.why).join(this.#joint);
  }
  get score(): number | undefined {
    return this.#verdicts.find((verdict) => verdict.score !== undefined)?.score;
  }
}
