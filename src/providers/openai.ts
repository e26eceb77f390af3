import { HermesError } from '../contracts/errors.ts';
import { defineProvider, type UpstreamCall } from '../contracts/provider.ts';
import type { ChatChunk, ChatCompletion } from '../wire/chat.ts';
import { isRecord, parseJson, parseJsonBytes, stringifyJson } from '../wire/json.ts';
import { writeRecalled } from '../wire/recalled.ts';
import { sameJson } from '../wire/same-json.ts';
import { spliceJson } from '../wire/splice-json.ts';
import { readEvent } from '../wire/sse.ts';
import { toAddress, toHeaders } from './openai/address.ts';
import { type OutgoingBody, toBody } from './openai/body.ts';
import { toCallerHeaders } from './openai/caller-headers.ts';
import { CustomCallReader, readCustomCalls } from './openai/custom-tools.ts';
import { toFailure, toPayloadError } from './openai/failure.ts';
import { nameChunkBack, nameCompletionBack } from './openai/names.ts';

/** What the way back must undo. */
type Changes = Omit<OutgoingBody, 'body' | 'dropped'>;

/** OpenAI's chat completions and every server that speaks them. What differs among them is in `target.quirks`; presets: docs/providers.md. */
export default defineProvider({
  form: 'openai-chat',
  defaults: { apiBase: 'https://api.openai.com/v1', apiKeyEnv: 'OPENAI_API_KEY' },
  toUpstream(request, target, _attempt, caller) {
    const { body, dropped, ...changed } = toBody(request, target, caller);
    return {
      method: 'POST',
      url: toAddress(target),
      headers: toHeaders(target, request.stream === true),
      body: (caller && spliceJson(body, caller, { same: sameJson, write: writeRecalled })) ?? stringifyJson(body),
      stream: request.stream === true,
      droppedParams: dropped,
      // Undefined says: the answer is in our form as it comes.
      context: changed.names || changed.custom ? changed : undefined,
    };
  },
  fromUpstream(bytes, call) {
    const completion = parseCompletion(bytes);
    const { names, custom } = changesOf(call);
    if (custom) readCustomCalls(completion);
    if (names) nameCompletionBack(completion, names);
    return completion;
  },
  createReader(call) {
    const { names, custom } = changesOf(call);
    const calls = custom && new CustomCallReader();
    return {
      read(event) {
        const { event: name, data } = readEvent(Buffer.from(event.buffer, event.byteOffset, event.byteLength));
        if (data === undefined || data.trim() === '') return null;
        if (data.trim() === '[DONE]') return 'end';
        const value = parseJson(data);
        if (!isRecord(value)) return null;
        if (value.error || value.object === 'error' || name === 'error') throw toPayloadError(Buffer.from(data));
        const chunk = calls ? calls.read(value as ChatChunk) : (value as ChatChunk);
        return names ? nameChunkBack(chunk, names) : chunk;
      },
    };
  },
  toHeaders: toCallerHeaders,
  toFailure,
});

function changesOf({ context }: UpstreamCall): Partial<Changes> {
  return (context as Changes | undefined) ?? {};
}

/** Throws what an error object says, and `upstream_empty_answer` for what is no completion at all. */
function parseCompletion(bytes: Uint8Array): ChatCompletion {
  let value: unknown;
  try {
    value = parseJsonBytes(bytes);
  } catch (cause) {
    throw new HermesError('upstream_empty_answer', 'The model answered with something that is not JSON; try again.', { cause });
  }
  if (isRecord(value)) {
    if (Array.isArray(value.choices) && value.choices.length > 0 && !value.error) return value as ChatCompletion;
    if (value.error || value.object === 'error' || value.detail) throw toPayloadError(bytes);
  }
  throw new HermesError('upstream_empty_answer', 'The model answered without an answer in it; try again.');
}
