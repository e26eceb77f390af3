import { defineDoor } from '../contracts/door.ts';
import { HermesError, toErrorBody } from '../contracts/errors.ts';
import { isRecord } from '../wire/json.ts';
import { liftAsk } from '../wire/lift-ask.ts';
import { sessionOf } from './openai-responses/response-id.ts';
import { toChatRequest } from './openai-responses/to-request.ts';
import { toResponse } from './openai-responses/to-response.ts';
import { ResponsesWriter } from './openai-responses/writer.ts';

/** `POST /v1/responses`. What `store` keeps at OpenAI is a session of hermes', and a response's id leads back to it. */
export default defineDoor({
  form: 'openai-responses',
  enter(body, headers, freshId) {
    if (!isRecord(body)) throw new HermesError('invalid_request', 'The request body must be a JSON object with `input`.');
    const { fields, ask, extended } = liftAsk(body, headers);
    const request = toChatRequest(fields);
    const sessionId = ask.sessionId ?? checkSession(namedSession(fields)) ?? (fields.store === false ? undefined : freshId?.());
    const user = typeof request.user === 'string' && request.user !== '' ? { user: request.user } : {};
    return { request, ask: { ...ask, ...(sessionId === undefined ? {} : { sessionId }), ...user }, stream: request.stream === true, usage: true, extended };
  },
  toBody: (completion, _facts, asked) => toResponse(completion, asked),
  createWriter: (asked) => new ResponsesWriter(asked),
  toError: (error) => toErrorBody(error),
});

/** The conversation that the caller goes on with. */
function namedSession({ previous_response_id, conversation }: Readonly<Record<string, unknown>>): string | undefined {
  const named = isRecord(conversation) ? conversation.id : conversation;
  if (typeof named === 'string' && named !== '') return named;
  if (typeof previous_response_id !== 'string') return undefined;
  const session = sessionOf(previous_response_id);
  if (session === undefined)
    throw new HermesError(
      'invalid_value',
      `hermes keeps no response '${previous_response_id.slice(0, 100)}': it was made with store: false, or elsewhere. Send the conversation as input.`,
      {
        param: 'previous_response_id',
        wireCode: 'previous_response_not_found',
      },
    );
  return session;
}

const LONGEST_SESSION_ID = 256;

function checkSession(id: string | undefined): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (id !== undefined && (id.length > LONGEST_SESSION_ID || /[\u0000-\u001f\u007f]/.test(id)))
    throw new HermesError('invalid_value', "'conversation' must be an id of at most 256 characters, none of them control characters.", {
      param: 'conversation',
    });
  return id;
}
