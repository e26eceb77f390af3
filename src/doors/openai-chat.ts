import { defineDoor } from '../contracts/door.ts';
import { HermesError, toErrorBody } from '../contracts/errors.ts';
import type { Ask } from '../contracts/exchange.ts';
import type { ChatRequest } from '../wire/chat.ts';
import { isCount } from '../wire/count.ts';
import { isRecord, stringifyJson } from '../wire/json.ts';
import { liftAsk } from '../wire/lift-ask.ts';
import { DONE_EVENT, toEvent } from '../wire/sse.ts';

/** Answers to one request; OpenAI's own bound. */
const MOST_ANSWERS = 128;
const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** OpenAI chat's own door: it checks what hermes relies on, and lifts hermes' fields out of the body. */
export default defineDoor({
  form: 'openai-chat',
  enter(body, headers) {
    if (!isRecord(body)) throw new HermesError('invalid_request', 'The request body must be a JSON object with `messages`.');
    const { fields, ask, extended } = liftAsk(body, headers);
    const request = checkRequest(fields);
    return { request, ask: withUser(ask, request), stream: request.stream === true, usage: request.stream_options?.include_usage === true, extended };
  },
  toBody: (completion) => completion,
  createWriter: () => ({
    write: (chunk) => toEvent(stringifyJson(chunk)),
    end: (outcome) => (outcome.error ? toEvent(stringifyJson(toErrorBody(outcome.error))) : DONE_EVENT),
  }),
  toError: (error) => toErrorBody(error),
});

function withUser(ask: Ask, request: ChatRequest): Ask {
  return typeof request.user === 'string' && request.user !== '' ? { ...ask, user: request.user } : ask;
}

function refuse(param: string, message: string): never {
  throw new HermesError('invalid_request', message, { param });
}

function checkRequest(fields: Record<string, unknown>): ChatRequest {
  const { messages, model, stream, stream_options, tools, user } = fields;
  if (messages === undefined || messages === null) refuse('messages', "Missing required parameter: 'messages'. Send a list of at least one message.");
  if (!Array.isArray(messages)) refuse('messages', "'messages' must be a list of messages.");
  if (messages.length === 0) refuse('messages', "'messages' must hold at least one message.");
  for (const [index, message] of messages.entries()) checkMessage(message, `messages[${index}]`);
  if (model !== undefined && model !== null && typeof model !== 'string') refuse('model', "'model' must be a string: a model's name, or \"auto\".");
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') refuse('stream', "'stream' must be true or false.");
  if (stream_options !== undefined && stream_options !== null && !isRecord(stream_options)) refuse('stream_options', "'stream_options' must be an object.");
  if (user !== undefined && user !== null && typeof user !== 'string') refuse('user', "'user' must be a string.");
  if (tools !== undefined && tools !== null) checkTools(tools);
  for (const name of ['max_tokens', 'max_completion_tokens']) checkCount(fields[name], name);
  checkCount(fields.n, 'n', MOST_ANSWERS);
  // Looked at member by member above; the rest goes through as it is.
  return fields as ChatRequest;
}

function checkCount(value: unknown, name: string, most?: number): void {
  if (value === undefined || value === null || isCount(value, most)) return;
  refuse(name, `'${name}' must be a whole number of at least 1${most === undefined ? '' : ` and at most ${most}`}.`);
}

function checkMessage(message: unknown, path: string): void {
  if (!isRecord(message)) refuse(path, `'${path}' must be an object with a role.`);
  const { role, content, tool_calls } = message;
  if (typeof role !== 'string' || !ROLES.has(role)) refuse(`${path}.role`, `'${path}.role' must be one of ${[...ROLES].join(', ')}.`);
  if (content !== undefined && content !== null && typeof content !== 'string' && !Array.isArray(content))
    refuse(`${path}.content`, `'${path}.content' must be a string or a list of parts.`);
  if (Array.isArray(content))
    for (const [index, part] of content.entries())
      if (!isRecord(part) || typeof part.type !== 'string') refuse(`${path}.content[${index}]`, `'${path}.content[${index}]' must be an object with a type.`);
  if (tool_calls !== undefined && tool_calls !== null) checkToolCalls(tool_calls, `${path}.tool_calls`);
  if (role === 'tool' && typeof message.tool_call_id !== 'string')
    refuse(`${path}.tool_call_id`, `'${path}.tool_call_id' is missing: a tool message names the call that it answers.`);
}

function checkToolCalls(calls: unknown, path: string): void {
  if (!Array.isArray(calls)) refuse(path, `'${path}' must be a list of tool calls.`);
  for (const [index, call] of calls.entries()) {
    if (!isRecord(call) || typeof call.id !== 'string') refuse(`${path}[${index}]`, `'${path}[${index}]' must be an object with an id.`);
    const { function: called } = call;
    if (called !== undefined && (!isRecord(called) || typeof called.name !== 'string' || typeof called.arguments !== 'string')) {
      refuse(`${path}[${index}].function`, `'${path}[${index}].function' must have a name and its arguments as JSON text.`);
    }
  }
}

function checkTools(tools: unknown): void {
  if (!Array.isArray(tools)) refuse('tools', "'tools' must be a list of function tools, or of names of hermes' tools.");
  for (const [index, tool] of tools.entries()) {
    if (!isRecord(tool) || typeof tool.type !== 'string')
      refuse(`tools[${index}]`, `'tools[${index}]' must be an object with a type, or the name of one of hermes' tools.`);
    if (tool.type === 'function' && (!isRecord(tool.function) || typeof tool.function.name !== 'string'))
      refuse(`tools[${index}].function.name`, `'tools[${index}].function.name' is missing.`);
  }
}
