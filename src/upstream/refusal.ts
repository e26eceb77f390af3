import { HermesError } from '../contracts/errors.ts';
import type { UpstreamFailure } from '../contracts/provider.ts';
import { isRecord, stringifyJson } from '../wire/json.ts';

const LONGEST_MESSAGE = 600;
/** Of details, as JSON. */
const LONGEST_DETAILS = 2000;
/** Addresses and keys that an upstream may quote in its own message. */
const ADDRESSES = /\b(?:https?|wss?|tcp):\/\/[^\s"'<>)\]}]+|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\blocalhost(?::\d+)?\b|\[[0-9a-f:]*::[0-9a-f:]*\](?::\d+)?/gi;
/** Machines by their names: with a port, or under a name that only an inner network has. */
const HOSTS = /\b(?:[a-z0-9-]+\.)+[a-z]{2,}:\d{2,5}\b|\b(?:[a-z0-9-]+\.)+(?:internal|local|localdomain|lan|intranet|svc)\b/gi;
/** Where a stack begins, of Node, Python or Java. */
const STACK = /\s*\n\s*at \S|\s*\bTraceback \(most recent call last\)|\s*\n\s*File "[^"]+", line \d/;
const SECRETS = /\b(?:sk|pk|rk|key|Bearer)[-_ ][A-Za-z0-9_*.-]{6,}/g;

/** An upstream's words, fit to be shown: no address, no key, no stack, not endless. */
export function toShownMessage(message: string): string {
  const [said = ''] = message.split(STACK, 1);
  const text = said.replace(ADDRESSES, '[address]').replace(HOSTS, '[address]').replace(SECRETS, '[key]').replace(/\s+/g, ' ').trim();
  return text.length > LONGEST_MESSAGE ? `${text.slice(0, LONGEST_MESSAGE)}…` : text;
}

/** The same of what stands beside the words; undefined when there is nothing, or more than is fit. */
function toShownDetails(details: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  if (details === undefined) return undefined;
  // Long integers leave their mark (wire/json) here: errors are written without knowing of it.
  const text = stringifyJson(details, (_name, member) => (typeof member === 'string' ? toShownMessage(member) : member));
  const shown: unknown = text.length <= LONGEST_DETAILS ? JSON.parse(text) : undefined;
  return isRecord(shown) ? shown : undefined;
}

/** An upstream's refusal as our error. Its cause is the failure itself: what failover decides by. */
export function toRefusal(failure: UpstreamFailure): HermesError {
  const said = toShownMessage(failure.message);
  const details = { said: toShownDetails(failure.details) };
  const words = { type: failure.type, wireCode: failure.code, param: failure.param, ...details };
  const cause = failure;
  switch (failure.kind) {
    case 'rate_limited':
      return new HermesError('rate_limit_exceeded', said || 'The model is rate limited; try again later.', {
        cause,
        headers: toRetryHeaders(failure.retryAfterMs),
        ...details,
      });
    case 'overloaded':
      return new HermesError(
        'upstream_error',
        said ? `The model failed (${failure.status}): ${said}` : `The model failed with status ${failure.status}; try again later.`,
        { cause },
      );
    case 'timeout':
      return new HermesError('upstream_timeout', said || 'The model timed out; try again later.', { cause });
    case 'conflict':
      return new HermesError('upstream_error', said || 'The model reported a conflict; try again.', { cause });
    case 'auth':
      return new HermesError('upstream_auth_failed', "The model refused hermes' own credentials; its operator must mend the key.", { cause });
    case 'quota':
      return new HermesError('upstream_quota_exhausted', "Hermes' own account at the model is exhausted; its operator must top it up.", { cause });
    case 'model_missing':
      return new HermesError('upstream_model_missing', 'The upstream does not know this model; its operator must mend model_name.', { cause });
    case 'redirected':
      return new HermesError(
        'upstream_error',
        `The model's address redirects (${failure.status}), and hermes does not follow; its operator must mend api_base.`,
        { cause },
      );
    case 'context_overflow':
      return new HermesError('context_length_exceeded', said || "The request is larger than the model's context window; send less.", {
        cause,
        exceeded: failure.exceeded,
        ...details,
      });
    case 'content_policy':
      return new HermesError('content_policy_violation', said || 'The model refused the content of this request.', {
        cause,
        ...words,
        status: toClientStatus(failure.status),
      });
    case 'invalid':
      return new HermesError('upstream_refused', said || 'The model refused the request as invalid.', {
        cause,
        ...words,
        status: toClientStatus(failure.status),
      });
  }
}

/** What the request itself is at fault for keeps the upstream's status. */
function toClientStatus(status: number): number {
  return status >= 400 && status < 500 ? status : 400;
}

function toRetryHeaders(retryAfterMs: number | undefined): Record<string, string> {
  return retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)), 'retry-after-ms': String(retryAfterMs) };
}
