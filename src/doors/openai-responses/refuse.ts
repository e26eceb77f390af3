import { HermesError } from '../../contracts/errors.ts';

/** A 400 that names the place. */
export function refuse(param: string, message: string): HermesError {
  return new HermesError('invalid_request', message, { param });
}
