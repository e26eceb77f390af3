import { HermesError } from '../contracts/errors.ts';
import type { GuardDirection } from '../contracts/guards.ts';

const REFUSED = {
  input: { what: 'request holds', mend: 'rephrase it, or leave that part out' },
  output: { what: 'answer held', mend: 'ask in other words' },
} as const;

/** Tells the guard, never what it found. */
export function refused(guard: string, direction: GuardDirection): HermesError {
  const { what, mend } = REFUSED[direction];
  return toRefusal(guard, `The ${what} what the guard "${guard}" does not let pass; ${mend}.`);
}

export interface Excess {
  /** Undefined: it is not known, only that it is too much. */
  size?: number | undefined;
  most: number;
  unit: 'tokens' | 'characters';
}

export function refusedAsTooLong(guard: string, direction: GuardDirection, { size, most, unit }: Excess): HermesError {
  const [what, mend] = direction === 'input' ? ['request', 'shorten it'] : ['answer', 'ask for a shorter one'];
  const had = size === undefined ? '' : `${size} ${unit}, and `;
  return toRefusal(guard, `The ${what} is longer than the guard "${guard}" lets pass: ${had}${most} ${had === '' ? `${unit} ` : ''}are the most; ${mend}.`);
}

export function broken(guard: string, cause: unknown): HermesError {
  return new HermesError('guard_failed', `The guard "${guard}" could not decide, so nothing passes; try again later.`, { cause, details: { guard } });
}

function toRefusal(guard: string, message: string): HermesError {
  return new HermesError('content_policy_violation', message, { details: { guard } });
}
