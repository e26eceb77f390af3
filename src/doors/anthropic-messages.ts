import { defineDoor } from '../contracts/door.ts';
import { HermesError } from '../contracts/errors.ts';
import { isRecord } from '../wire/json.ts';
import { liftAsk } from '../wire/lift-ask.ts';
import { toAnswer } from './anthropic-messages/to-answer.ts';
import { toAnthropicError } from './anthropic-messages/to-error.ts';
import { toChatRequest } from './anthropic-messages/to-request.ts';
import { AnthropicWriter } from './anthropic-messages/writer.ts';

/** `POST /v1/messages`: clients that speak Anthropic, of both API versions. */
export default defineDoor({
  form: 'anthropic-messages',
  enter(body, headers) {
    if (!isRecord(body)) throw new HermesError('invalid_request', 'The request body must be a JSON object with `messages`.');
    const { fields, ask, extended } = liftAsk(body, headers);
    const request = toChatRequest(fields, headers['anthropic-beta']);
    const user = typeof request.user === 'string' && request.user !== '' ? { user: request.user } : {};
    return { request, ask: { ...ask, ...user }, stream: request.stream === true, usage: true, extended };
  },
  toBody: toAnswer,
  createWriter: () => new AnthropicWriter(),
  toError: toAnthropicError,
  toHeaders: ({ facts }) => ({ ...(facts.replayed ? {} : ownLimits(facts.upstreamHeaders)), ...(facts.requestId ? { 'request-id': facts.requestId } : {}) }),
});

/** An Anthropic upstream's rate limits, as its clients know them. */
function ownLimits(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('anthropic-ratelimit-')));
}
