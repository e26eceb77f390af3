import { HermesError } from '../contracts/errors.ts';
import type { GuardDirection } from '../contracts/guards.ts';

/** Tells the guard, never what it found. */
export function refused(guard: string, direction: GuardDirection): HermesError {
  const what = direction === 'input' ? 'request holds' : 'answer held';
  return new HermesError('content_policy_violation', `The ${what} what the guard "${guard}" does not let pass.`, { details: { guard } });
}
export function broken(guard: string, cause: unknown): HermesError {
  return new HermesError('guard_failed', `The guard "${guard}" could not decide, so nothing passes; try again later.`, { cause, details: { guard } });
}
