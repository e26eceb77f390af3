import { type ConfigProblem, didYouMean, oneOf } from './problems.ts';

/** A name that hermes does not know, and that a plugin may add once it is set up. */
export interface MissingName {
  kind: 'provider' | 'matcher' | 'tool';
  name: string;
  /** What is wrong if nothing adds it, without the mend. */
  said: string;
  known: Iterable<string>;
}
export interface UnlessAdded extends MissingName {
  /** Where it stands; the message is of this moment, before anything was added. */
  problem: ConfigProblem;
}

/** The mistake with its mend. `added`: what plugins have brought, which may have been meant. */
export function toldOf({ kind, name, said, known }: MissingName, added: Iterable<string> = []): string {
  const all = new Set([...known, ...added]);
  // Of tools there may be hundreds.
  return `${said}${didYouMean(name, all) || (kind === 'tool' ? '' : `; known: ${oneOf(all)}`)}`;
}

/**
 * Plugins cannot be set up by a configuration with mistakes: of what they may add, what looks like a slip is told along. A tool
 * that is missing is no mistake.
 */
export function slipsAmong(missing: readonly UnlessAdded[]): ConfigProblem[] {
  return missing.filter(({ kind, name, known }) => kind !== 'tool' && didYouMean(name, known) !== '').map(({ problem }) => problem);
}
