import { type HermesError, isAbort } from '../contracts/errors.ts';
import type { UpstreamFailure } from '../contracts/provider.ts';
import { NeverSent } from './concurrency.ts';
import { failureOf } from './failure.ts';

/** Full jitter: `random() * min(CAP, BASE * 2^round)`. Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. */
const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 5000;
/** A 429 that says nothing of time. */
export const DEFAULT_ASIDE_MS = 1000;
/** No upstream is believed beyond this. */
export const LONGEST_ASIDE_MS = 3_600_000;

export type Reason =
  | 'rate_limited'
  | 'overloaded'
  | 'busy'
  | 'failed'
  | 'timeout'
  | 'auth'
  | 'quota'
  | 'model_missing'
  | 'redirected'
  | 'context_overflow'
  | 'key_missing'
  | 'unable'
  | 'open';

/** What a failed try means for what comes next. */
export interface Verdict {
  /** `stop`: to the client as it is. `again`: elsewhere, or here after a backoff. `elsewhere`: never here again in this request. */
  next: 'stop' | 'again' | 'elsewhere';
  /** What the breaker hears. */
  mark: 'failure' | 'aside' | 'none';
  reason: Reason;
  retryAfterMs: number | undefined;
}

const verdict = (next: Verdict['next'], mark: Verdict['mark'], reason: Reason, retryAfterMs?: number): Verdict => ({ next, mark, reason, retryAfterMs });

export function judge(error: HermesError): Verdict {
  // Hermes itself held it back: another upstream may have room.
  if (error instanceof NeverSent) return verdict(error.code === 'overloaded' ? 'elsewhere' : 'stop', 'none', 'busy');
  if (isAbort(error)) return verdict('stop', 'none', 'failed');
  // The whole request's time is up while this upstream was silent: nothing more can be tried, but it was too slow.
  if (error.code === 'deadline_exceeded') return verdict('stop', 'failure', 'timeout');
  const failure = failureOf(error);
  return failure ? judgeFailure(failure) : judgeOwn(error);
}

/** An upstream's refusal in its own words. */
function judgeFailure({ kind, retryAfterMs, status }: UpstreamFailure): Verdict {
  switch (kind) {
    case 'rate_limited':
      return verdict('again', 'aside', 'rate_limited', retryAfterMs);
    case 'overloaded':
      return verdict('again', 'failure', status === 503 || status === 529 ? 'overloaded' : 'failed', retryAfterMs);
    case 'timeout':
      return verdict('again', 'failure', 'timeout', retryAfterMs);
    case 'conflict':
      return verdict('again', 'none', 'failed', retryAfterMs);
    case 'auth':
    case 'quota':
    case 'model_missing':
    case 'redirected':
      return verdict('elsewhere', 'none', kind);
    case 'context_overflow':
      return verdict('elsewhere', 'none', 'context_overflow');
    case 'content_policy':
    case 'invalid':
      return verdict('stop', 'none', 'failed');
  }
}

/** No refusal was read: the connection failed, the upstream was silent or said nothing of use, or a step of ours declined. */
function judgeOwn(error: HermesError): Verdict {
  switch (error.code) {
    case 'upstream_timeout':
      return verdict('elsewhere', 'failure', 'timeout');
    case 'upstream_error':
    case 'upstream_empty_answer':
      return verdict('again', 'failure', 'failed');
    case 'upstream_unavailable':
      return verdict('again', 'failure', 'overloaded');
    case 'rate_limit_exceeded':
      return verdict('stop', 'none', 'rate_limited');
    case 'context_length_exceeded':
      return verdict('elsewhere', 'none', 'context_overflow');
    case 'upstream_key_missing':
      return verdict('elsewhere', 'none', 'key_missing');
    case 'upstream_auth_failed':
      return verdict('elsewhere', 'none', 'auth');
    case 'upstream_quota_exhausted':
      return verdict('elsewhere', 'none', 'quota');
    case 'upstream_model_missing':
      return verdict('elsewhere', 'none', 'model_missing');
    case 'unsupported_parameter':
    case 'model_unpriced':
      return verdict('elsewhere', 'none', 'unable');
    default:
      return verdict('stop', 'none', 'failed');
  }
}

/** Milliseconds to wait before the same upstream is asked again for the `round`th time (from 0). */
export function backoffMs(round: number, random: number): number {
  return random * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** round);
}
