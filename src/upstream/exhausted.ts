import { type ErrorCode, type ErrorOptions, HermesError } from '../contracts/errors.ts';
import { failureOf } from './failure.ts';
import type { PassedOver, RequestLog } from './request-log.ts';
import { DEFAULT_ASIDE_MS, type Reason } from './retry-policy.ts';
import type { Failed } from './upstream-try.ts';

const CODES: Record<Reason, ErrorCode> = {
  rate_limited: 'rate_limit_exceeded',
  overloaded: 'upstream_unavailable',
  busy: 'overloaded',
  open: 'upstream_unavailable',
  failed: 'upstream_error',
  timeout: 'upstream_timeout',
  auth: 'upstream_auth_failed',
  quota: 'upstream_quota_exhausted',
  model_missing: 'upstream_model_missing',
  redirected: 'upstream_error',
  context_overflow: 'context_length_exceeded',
  key_missing: 'upstream_key_missing',
  unable: 'unsupported_parameter',
};
const ADVICE: Partial<Record<Reason, string>> = {
  rate_limited: 'Try again after the time in retry-after.',
  auth: 'The upstream refuses the key that hermes has for it: an operator must mend it.',
  quota: 'The quota of the account that hermes has there is used up: an operator must mend it.',
  model_missing: 'The upstream does not know the model: an operator must mend its model_name.',
  redirected: 'It redirects, and hermes does not follow: an operator must mend its api_base.',
  key_missing: 'No key is set for it: an operator must set the variable that its api_key_env names.',
  unable: 'Choose a model that can, or leave that part of the request out.',
};
/** Which of the upstreams that were not even called has the last word. */
const WEIGHT: readonly Reason[] = ['rate_limited', 'open', 'key_missing', 'context_overflow', 'unable'];

/** The one error for a request that nothing could serve: what was tried, names only. Its tries are used up: a client must not multiply them. */
export function toExhausted(model: string, log: RequestLog): HermesError {
  const last = lastWord(log.failed);
  const passed = last ? undefined : WEIGHT.map((reason) => log.passed.find((entry) => entry.reason === reason)).find(Boolean);
  const reason = last?.verdict.reason ?? passed?.reason ?? 'open';
  const own = last && isOwnWord(last) ? last.error : undefined;
  const options: ErrorOptions = {
    headers: reason === 'busy' && own ? own.headers : reason === 'rate_limited' ? retryAfter(log) : { 'x-should-retry': 'false', ...reopening(reason, log) },
    details: { attempts: log.failed.map(toDetail) },
    ...(last ? { cause: last.error } : {}),
    ...(own ? { param: own.param, status: own.status, type: own.type, exceeded: own.exceeded, said: own.said } : {}),
  };
  return new HermesError(own?.code ?? CODES[reason], own?.message ?? toMessage(model, log, reason), options);
}

/** A window that was too small, a part that cannot be sent, a queue that was full: told in their own words, which say what to do. */
function isOwnWord({ verdict }: Failed): boolean {
  return verdict.reason === 'context_overflow' || verdict.reason === 'unable' || verdict.reason === 'busy';
}

/** An overflow is the last word only when there was nothing else: what failed for a passing reason may work later. */
function lastWord(failed: readonly Failed[]): Failed | undefined {
  return failed.findLast((failure) => !isOwnWord(failure)) ?? failed.at(-1);
}

function retryAfter(log: RequestLog): Record<string, string> {
  const failed = log.failed.filter(({ verdict }) => verdict.reason === 'rate_limited').map(({ verdict }) => verdict.retryAfterMs);
  const passed = log.passed.filter(({ reason }) => reason === 'rate_limited').map(({ waitMs }) => waitMs);
  return toHeaders([...failed, ...passed].map((wait) => wait ?? DEFAULT_ASIDE_MS));
}

/** When the first open breaker lets a probe through. */
function reopening(reason: Reason, { passed }: RequestLog): Record<string, string> {
  const waits = passed.map(({ waitMs }) => waitMs).filter((wait) => wait !== undefined);
  return reason === 'open' && waits.length > 0 ? toHeaders(waits) : {};
}

function toHeaders(waits: readonly number[]): Record<string, string> {
  const ms = Math.max(1, Math.min(...waits));
  return { 'retry-after': String(Math.ceil(ms / 1000)), 'retry-after-ms': String(Math.ceil(ms)) };
}

function toMessage(model: string, log: RequestLog, reason: Reason): string {
  const tried = log.failed.map(({ target, error, verdict }) => `${target.id} ${describe(verdict.reason, failureOf(error)?.status)}`);
  const untried = log.passed.map((entry) => `${entry.upstream} ${describePassed(entry)}`);
  const told = [...new Set([...tried, ...untried])].join('; ');
  return `No upstream of the model "${model}" could answer${told ? ` (${told})` : ''}. ${ADVICE[reason] ?? 'Try again later.'}`;
}

function describe(reason: Reason, status: number | undefined): string {
  if (status !== undefined) return `answered ${status}`;
  if (reason === 'timeout') return 'timed out';
  return reason === 'failed' ? 'failed' : reason.replaceAll('_', ' ');
}

function describePassed({ reason, missing }: PassedOver): string {
  switch (reason) {
    case 'open':
      return 'is out of service for now';
    case 'rate_limited':
      return 'is set aside after a rate limit';
    case 'key_missing':
      return 'has no key';
    case 'unable':
      return `does not support ${missing ?? 'this'}`;
    default:
      return 'has too small a window';
  }
}

function toDetail({ model, target, verdict, error }: Failed): Record<string, unknown> {
  return { model, upstream: target.id, outcome: verdict.reason, status: failureOf(error)?.status ?? null };
}
