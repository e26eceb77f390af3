import { HermesError } from './errors.ts';

/** For what only reads or deletes. */
export function storeAway(cause: unknown): HermesError {
  return toError('The session store does not answer, and what was asked for is in it; try again.', cause);
}

export function turnNotKept(cause: unknown): HermesError {
  return toError('The session store is away, so this turn could not be kept; send it again, or without session_id.', cause);
}

function toError(message: string, cause: unknown): HermesError {
  return new HermesError('session_store_unavailable', message, { cause, headers: { 'retry-after': '2' } });
}
