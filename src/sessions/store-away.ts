import { HermesError } from '../contracts/errors.ts';

export function storeAway(cause: unknown): HermesError {
  return new HermesError('session_store_unavailable', 'The session store is away, so this turn could not be kept; send it again, or without session_id.', {
    cause,
    headers: { 'retry-after': '2' },
  });
}
