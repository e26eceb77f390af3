import type { HermesError } from '../../contracts/errors.ts';
import type { Facts } from '../../contracts/exchange.ts';

/** Source: Anthropic's error reference. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

export function toAnthropicError(error: HermesError, facts: Facts): Record<string, unknown> {
  const type = TYPES[error.status] ?? (error.status >= 500 ? 'api_error' : 'invalid_request_error');
  const details = error.said ? { details: error.said } : {};
  return { type: 'error', error: { type, message: toMessage(error), ...details }, request_id: facts.requestId ?? null, ...error.details };
}

/** Clients know a window that is exceeded by the API's own words alone, and make room then: they come first. */
function toMessage({ code, message, exceeded }: HermesError): string {
  if (code !== 'context_length_exceeded' || message.startsWith('prompt is too long')) return message;
  const numbers = exceeded ? `${exceeded.tokens} tokens > ${exceeded.maximum} maximum. ` : '';
  return `prompt is too long: ${numbers}${message}`;
}
