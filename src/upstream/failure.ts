import type { HermesError } from '../contracts/errors.ts';
import type { FailureKind, UpstreamFailure } from '../contracts/provider.ts';

const KINDS: ReadonlySet<unknown> = new Set<FailureKind>([
  'rate_limited',
  'overloaded',
  'timeout',
  'conflict',
  'auth',
  'quota',
  'model_missing',
  'redirected',
  'context_overflow',
  'content_policy',
  'invalid',
]);

/** The upstream's own words behind an error, when it said any: `send` puts them into the error's cause. */
export function failureOf(error: HermesError): UpstreamFailure | undefined {
  for (let cause: unknown = error.cause, depth = 0; cause !== null && typeof cause === 'object' && depth < 4; depth++) {
    if (isFailure(cause)) return cause;
    cause = 'failure' in cause ? cause.failure : 'cause' in cause ? cause.cause : undefined;
  }
  return undefined;
}

export function isFailure(value: object): value is UpstreamFailure {
  return 'kind' in value && KINDS.has(value.kind) && 'status' in value && typeof value.status === 'number';
}
