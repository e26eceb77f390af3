import { defineDoor } from '../contracts/door.ts';
import { HermesError, toErrorBody } from '../contracts/errors.ts';
import type { Ask } from '../contracts/exchange.ts';
import { isRecord } from '../wire/json.ts';
import { liftAsk } from '../wire/lift-ask.ts';
import { toInputItems } from './openai-responses/input-items.ts';
import { outputById, referenceOf, responseOf } from './openai-responses/references.ts';
import { sessionOf } from './openai-responses/response-id.ts';
import { resolveReferences } from './openai-responses/to-messages.ts';
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
    const user = typeof request.user === 'string' && request.user !== '' ? { user: request.user } : {};
    const refers = request.messages.some((message) => referenceOf(message) !== undefined) ? { refers: true as const } : {};
    return {
      request,
      ask: { ...ask, ...toSession(fields, ask.sessionId, freshId), ...user, ...refers },
      stream: request.stream === true,
      usage: true,
      extended,
    };
  },
  toBody: (completion, facts, asked) => toResponse(completion, asked, facts),
  createWriter: (asked, facts) => new ResponsesWriter(asked, facts),
  kept: {
    keep(completion, facts, asked) {
      const view = toResponse(completion, asked, facts);
      return { id: view.id, view };
    },
    sessionOf,
    toItems: toInputItems,
    references: (messages) =>
      messages.flatMap((message) => {
        const item = referenceOf(message);
        return item === undefined ? [] : [{ item, answer: responseOf(item) }];
      }),
    itemsOf: outputById,
    resolve: resolveReferences,
  },
  toError: (error) => toErrorBody(error),
});

/** What is asked of the session: by hermes' own field, by OpenAI's, or a new one. With `store: false` one that is named is read, and nothing is kept. */
function toSession(fields: Readonly<Record<string, unknown>>, own: string | undefined, freshId: (() => string) | undefined): Partial<Ask> {
  const stores = fields.store !== false;
  const named = own ?? checkSession(namedSession(fields));
  if (named === undefined) return stores && freshId ? { sessionId: freshId(), sessionIsNew: true } : {};
  const { previous_response_id: previous, conversation } = fields;
  const continues = own === undefined && !conversation && typeof previous === 'string' ? { continues: previous } : {};
  return { sessionId: named, ...continues, ...(stores ? {} : { store: false }) };
}

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
