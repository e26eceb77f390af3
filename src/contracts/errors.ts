/**
 * Every error that hermes itself makes: its HTTP status, OpenAI type and whether a client may simply try again.
 * The table is the whole list; `docs/errors.md` is tied to it by a test.
 */
export const ERRORS = {
  invalid_request: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_json: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_value: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retryable: false },
  content_policy_violation: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_api_key: { status: 401, type: 'authentication_error', retryable: false },
  invalid_signature: { status: 401, type: 'authentication_error', retryable: false },
  permission_denied: { status: 403, type: 'permission_error', retryable: false },
  model_not_allowed: { status: 403, type: 'permission_error', retryable: false },
  not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  model_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  session_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retryable: false },
  request_timeout: { status: 408, type: 'invalid_request_error', retryable: true },
  session_busy: { status: 409, type: 'conflict_error', retryable: true },
  request_too_large: { status: 413, type: 'invalid_request_error', retryable: false },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', retryable: false },
  idempotency_key_reused: { status: 422, type: 'invalid_request_error', retryable: false },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', retryable: true },
  budget_exceeded: { status: 429, type: 'rate_limit_error', retryable: false },
  client_closed: { status: 499, type: 'client_error', retryable: false },
  superseded: { status: 499, type: 'client_error', retryable: false },
  internal_error: { status: 500, type: 'server_error', retryable: true },
  plugin_error: { status: 500, type: 'server_error', retryable: false },
  upstream_key_missing: { status: 500, type: 'server_error', retryable: false },
  model_unpriced: { status: 500, type: 'server_error', retryable: false },
  upstream_error: { status: 502, type: 'upstream_error', retryable: true },
  upstream_refused: { status: 400, type: 'invalid_request_error', retryable: false },
  upstream_empty_answer: { status: 502, type: 'upstream_error', retryable: true },
  upstream_auth_failed: { status: 502, type: 'upstream_error', retryable: false },
  upstream_quota_exhausted: { status: 502, type: 'upstream_error', retryable: false },
  upstream_model_missing: { status: 502, type: 'upstream_error', retryable: false },
  upstream_unavailable: { status: 503, type: 'upstream_error', retryable: true },
  session_store_unavailable: { status: 503, type: 'server_error', retryable: true },
  guard_failed: { status: 503, type: 'server_error', retryable: true },
  shutting_down: { status: 503, type: 'server_error', retryable: true },
  overloaded: { status: 503, type: 'server_error', retryable: true },
  upstream_timeout: { status: 504, type: 'upstream_error', retryable: true },
  deadline_exceeded: { status: 504, type: 'timeout_error', retryable: true },
} as const satisfies Record<string, { status: number; type: string; retryable: boolean }>;

export type ErrorCode = keyof typeof ERRORS;

/** Of a window that is too small, in tokens: what the request's prompt has, and what fits. */
export interface Exceeded {
  tokens: number;
  maximum: number;
}

export interface ErrorOptions {
  /** The request field that is at fault, `messages[2].content`; null when none is. */
  param?: string | null;
  cause?: unknown;
  /** Response headers that belong to this error: `retry-after`, `x-hermes-limit` … */
  headers?: Record<string, string>;
  /** Overrides of the table, for an upstream's own words that are handed on (status 422, its type and its code). */
  status?: number;
  type?: string;
  retryable?: boolean;
  wireCode?: string | null;
  /** More top-level members of the error body: `original`, `attempts` … Never a secret, never an address. */
  details?: Record<string, unknown>;
  /** Of `context_length_exceeded`, where the numbers are known. */
  exceeded?: Exceeded | undefined;
  /** `error.details` of Anthropic's form, an upstream's own (fit to be shown) or ours: for clients of that form. */
  said?: Record<string, unknown> | undefined;
}

/** The one error that hermes throws. `message` is shown to the caller and says what to do; `cause` is for the log alone. */
export class HermesError extends Error {
  readonly status: number;
  readonly type: string;
  /** Our own code, for decisions. */
  readonly code: ErrorCode;
  /** The code that the caller sees; an upstream's own when it is handed on. */
  readonly wireCode: string | null;
  readonly param: string | null;
  readonly retryable: boolean;
  readonly headers: Record<string, string>;
  readonly details: Record<string, unknown> | undefined;
  readonly exceeded: Exceeded | undefined;
  readonly said: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HermesError';
    const row = ERRORS[code];
    this.code = code;
    this.wireCode = options.wireCode === undefined ? code : options.wireCode;
    this.status = options.status ?? row.status;
    this.type = options.type ?? row.type;
    this.retryable = options.retryable ?? row.retryable;
    this.param = options.param ?? null;
    this.headers = options.headers ?? {};
    this.details = options.details;
    this.exceeded = options.exceeded;
    this.said = options.said;
  }

  /** The same error in other words: everything but what is given here stays. */
  reworded(message: string, more: Pick<ErrorOptions, 'details' | 'said'>): HermesError {
    const { code, status, type, retryable, param, wireCode, headers, details, exceeded, said, cause } = this;
    return new HermesError(code, message, {
      status,
      type,
      retryable,
      param,
      wireCode,
      headers,
      ...(details ? { details } : {}),
      exceeded,
      said,
      cause,
      ...more,
    });
  }
}

/** Anything thrown, as a HermesError; what was not one becomes `internal_error` with a message that tells nothing. */
export function toHermesError(
  thrown: unknown,
  code: ErrorCode = 'internal_error',
  message = 'Something went wrong inside hermes; the log has the details under this request id.',
): HermesError {
  return thrown instanceof HermesError ? thrown : new HermesError(code, message, { cause: thrown });
}

/** OpenAI's error body: all four members are always there. */
export function toErrorBody(
  error: HermesError,
): { error: { message: string; type: string; param: string | null; code: string | null } } & Record<string, unknown> {
  return { error: { message: error.message, type: error.type, param: error.param, code: error.wireCode }, ...error.details };
}

/** Was the answer broken off by us or the caller rather than failed? */
export function isAbort(error: HermesError): boolean {
  return error.code === 'client_closed' || error.code === 'superseded' || error.code === 'shutting_down';
}
