import { HermesError } from '../../contracts/errors.ts';
import type { FailureKind, UpstreamFailure } from '../../contracts/provider.ts';
import { isRecord, parseJsonBytes } from '../../wire/json.ts';
import { parseRetryAfter } from '../../wire/retry-after.ts';

interface Row {
  kind: FailureKind;
  status: number;
}
/** Source: Anthropic's error reference. An error event inside a 200 has the type alone. */
const TYPES: Readonly<Record<string, Row>> = {
  invalid_request_error: { kind: 'invalid', status: 400 },
  authentication_error: { kind: 'auth', status: 401 },
  billing_error: { kind: 'quota', status: 402 },
  permission_error: { kind: 'auth', status: 403 },
  not_found_error: { kind: 'model_missing', status: 404 },
  conflict_error: { kind: 'conflict', status: 409 },
  request_too_large: { kind: 'invalid', status: 413 },
  rate_limit_error: { kind: 'rate_limited', status: 429 },
  api_error: { kind: 'overloaded', status: 500 },
  timeout_error: { kind: 'timeout', status: 504 },
  overloaded_error: { kind: 'overloaded', status: 529 },
};
/** The window is exceeded, in the words of the API and of the hosts that serve it. */
const OVERFLOW =
  /prompt is too long|exceeds? (?:the )?(?:model'?s )?(?:maximum )?(?:context|input)|exceed context limit|context (?:window|length)|too many (?:input )?tokens|input is too long|long context requests/i;
/** Money, although the status says 400: the credit balance and self-set spend limits. */
const QUOTA = /credit balance is too low|specified API usage limits|spend(?:ing)? limit/i;
const POLICY = /content filter|usage polic|blocked by/i;

/** Gives the meaning of a refusal, or of an error event's payload inside a 200. */
export function toFailure(status: number, headers: Readonly<Record<string, string>>, bytes: Uint8Array): UpstreamFailure {
  const { type, message, details } = parseError(bytes);
  const row = status >= 400 ? rowOfStatus(status, type) : (TYPES[type] ?? { kind: 'overloaded', status: 500 });
  const kind = refine(row, message);
  return {
    kind,
    status: row.status,
    message: message || `The upstream answered with status ${row.status}.`,
    type: type || 'api_error',
    code: kind === 'context_overflow' ? 'context_length_exceeded' : null,
    param: null,
    retryAfterMs: parseRetryAfter(headers),
    ...(details ? { details } : {}),
  };
}

function parseError(bytes: Uint8Array): { type: string; message: string; details?: Record<string, unknown> } {
  let body: unknown;
  try {
    body = parseJsonBytes(bytes);
  } catch {
    // HTML of a proxy in between: its text helps nobody and may name addresses.
    return { type: '', message: '' };
  }
  const error = isRecord(body) && isRecord(body.error) ? body.error : isRecord(body) ? body : {};
  return {
    type: typeof error.type === 'string' ? error.type : '',
    message: typeof error.message === 'string' ? error.message : '',
    ...(isRecord(error.details) ? { details: error.details } : {}),
  };
}

/** The status leads: hosts in between keep it and lose the type. */
function rowOfStatus(status: number, type: string): Row {
  const row = TYPES[type];
  if (row && row.status === status) return row;
  const known = Object.values(TYPES).find((one) => one.status === status);
  if (known) return { kind: known.kind, status };
  if (status === 408) return { kind: 'timeout', status };
  return { kind: status >= 500 ? 'overloaded' : (row?.kind ?? 'invalid'), status };
}

function refine({ kind, status }: Row, message: string): FailureKind {
  if (kind === 'overloaded' || kind === 'timeout' || kind === 'auth') return kind;
  if ((status === 400 || status === 413 || status === 429) && OVERFLOW.test(message)) return 'context_overflow';
  if (status === 400 && QUOTA.test(message)) return 'quota';
  if (status === 400 && POLICY.test(message)) return 'content_policy';
  return kind;
}

/** An error that came inside a 200, with what the upstream said as its cause. */
export function toStreamError(payload: string): HermesError {
  const failure = toFailure(200, {}, Buffer.from(payload));
  const options = { cause: failure };
  switch (failure.kind) {
    case 'overloaded':
      return new HermesError(failure.status === 529 ? 'overloaded' : 'upstream_error', failure.message, options);
    case 'rate_limited':
      return new HermesError('rate_limit_exceeded', failure.message, options);
    case 'timeout':
      return new HermesError('upstream_timeout', failure.message, options);
    case 'context_overflow':
      return new HermesError('context_length_exceeded', failure.message, options);
    case 'content_policy':
      return new HermesError('content_policy_violation', failure.message, options);
    default:
      return new HermesError('upstream_error', failure.message, options);
  }
}
