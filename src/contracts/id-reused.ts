import { HermesError } from './errors.ts';

/** A request id came with another body than the request that it names. */
export function idReused(): HermesError {
  return new HermesError('idempotency_key_reused', 'This request id was used for a different request; take a new id for a new request.', {
    param: 'request_id',
  });
}
