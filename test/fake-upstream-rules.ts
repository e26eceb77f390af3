import type { ChatMessage } from '../src/wire/chat.ts';
import type { ReceivedCall } from './fake-upstream.ts';

/** What the OpenAI API refuses, as far as a gateway could get it wrong. */
export interface Violation {
  status: number;
  message: string;
  param: string | null;
  code: string | null;
}
const LONGEST_USER = 64;
const MOST_STOPS = 4;
const LONGEST_CALL_ID = 40;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);
/** Hermes' own fields: none ever reaches an upstream. */
const OURS = ['session_id', 'prefer_model', 'timeout', 'user_level', 'service_type', 'project', 'request_id', 'priority', 'hermes', 'degraded'];
/** Headers that only a caller could have sent. */
const CALLERS = ['cookie', 'x-api-key', 'openai-organization', 'openai-project', 'x-forwarded-for', 'expect', 'te', 'forwarded'];

const bad = (message: string, param: string | null = null, code: string | null = null): Violation => ({ status: 400, message, param, code });

export function findViolation(call: ReceivedCall, apiKey: string | undefined): Violation | undefined {
  return findHeaderViolation(call, apiKey) ?? findBodyViolation(call) ?? findToolViolation(call) ?? findMessageViolation(call.body.messages);
}

function findHeaderViolation({ method, path, headers, raw }: ReceivedCall, apiKey: string | undefined): Violation | undefined {
  if (method !== 'POST') return { ...bad(`Not allowed to ${method} on ${path}.`), status: 405 };
  if (!/\/chat\/completions(\?|$)/.test(path)) return { ...bad(`Unknown request URL: POST ${path}.`, null, 'unknown_url'), status: 404 };
  const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? (headers['api-key'] as string | undefined);
  if (!bearer || bearer === 'undefined' || bearer === 'null' || (apiKey !== undefined && bearer !== apiKey))
    return { ...bad('Incorrect API key provided.', null, 'invalid_api_key'), status: 401 };
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) return bad(`Invalid content-type: ${headers['content-type']}`);
  if (headers['content-length'] !== undefined && headers['transfer-encoding'] !== undefined) return bad('Both content-length and transfer-encoding.');
  if (headers['content-length'] !== undefined && Number(headers['content-length']) !== Buffer.byteLength(raw)) return bad('content-length is wrong.');
  const callers = Object.keys(headers).find((name) => CALLERS.includes(name) || name.startsWith('x-hermes-') || name.startsWith('x-stainless-'));
  return callers ? bad(`The header ${callers} is the caller's own.`) : undefined;
}

function findBodyViolation({ raw, body }: ReceivedCall): Violation | undefined {
  try {
    JSON.parse(raw);
  } catch {
    return bad('We could not parse the JSON body of your request.');
  }
  if (typeof body.model !== 'string' || body.model === '' || body.model === 'auto') return bad('you must provide a model parameter', 'model');
  for (const field of OURS) if (field in body) return bad(`Unrecognized request argument supplied: ${field}`, field, 'unknown_parameter');
  if (body.max_tokens != null && body.max_completion_tokens != null)
    return bad("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", 'max_tokens');
  for (const field of ['max_tokens', 'max_completion_tokens'] as const)
    if (body[field] != null && (!Number.isInteger(body[field]) || (body[field] ?? 0) < 1)) return bad(`Invalid '${field}': must be at least 1.`, field);
  if (typeof body.user === 'string' && body.user.length > LONGEST_USER)
    return bad(`Invalid 'user': string too long. Expected a string with maximum length ${LONGEST_USER}.`, 'user', 'string_above_max_length');
  if (body.reasoning_effort != null && /^gpt-4/.test(body.model))
    return bad('Unrecognized request argument supplied: reasoning_effort', 'reasoning_effort', 'unknown_parameter');
  if (body.reasoning_effort != null && body.reasoning_effort !== 'none' && body.tools && /^gpt-5\.[2-9]/.test(body.model))
    return bad(`Function tools with reasoning_effort are not supported for ${body.model} in /v1/chat/completions.`, 'reasoning_effort');
  if (Array.isArray(body.stop) && body.stop.length > MOST_STOPS)
    return bad(`Invalid 'stop': array too long. Expected an array with maximum length ${MOST_STOPS}.`, 'stop', 'array_above_max_length');
  if (body.metadata != null && body.store !== true) return bad("The 'metadata' parameter is only allowed when 'store' is enabled.", 'metadata');
  if (body.stream_options != null && body.stream !== true)
    return bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options');
  return undefined;
}

function findToolViolation({ body }: ReceivedCall): Violation | undefined {
  const { tools, tool_choice } = body;
  if (tools !== undefined) {
    if (!Array.isArray(tools) || tools.length === 0) return bad("Invalid 'tools': empty array. Expected an array with minimum length 1.", 'tools');
    for (const [index, tool] of tools.entries()) {
      if (tool === null || typeof tool !== 'object') return bad(`Invalid type for 'tools[${index}]': expected an object.`, `tools[${index}]`);
      if (tool.type === 'function' && !TOOL_NAME.test(tool.function?.name ?? ''))
        return bad(
          `Invalid 'tools[${index}].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.`,
          `tools[${index}].function.name`,
          'invalid_value',
        );
      const problem = findCustomToolViolation(tool, `tools[${index}]`);
      if (problem) return problem;
    }
  }
  for (const field of ['tool_choice', 'parallel_tool_calls'] as const)
    if (body[field] != null && tools === undefined && body.functions === undefined)
      return bad(`Invalid value for '${field}': '${field}' is only allowed when 'tools' are specified.`, field);
  const custom = (tool_choice as { custom?: { name?: string } } | null | undefined)?.custom?.name;
  if (custom !== undefined && !tools?.some((tool) => tool.type === 'custom' && Object(tool.custom).name === custom))
    return bad(`Tool choice '${custom}' not found in 'tools' parameter.`, 'tool_choice');
  const chosen = (tool_choice as { function?: { name?: string } } | null | undefined)?.function?.name;
  if (chosen !== undefined && !tools?.some((tool) => tool.function?.name === chosen))
    return bad(`Tool choice '${chosen}' not found in 'tools' parameter.`, 'tool_choice');
  return undefined;
}

/** A tool is of one kind, and has nothing of the other. */
function findCustomToolViolation(tool: Record<string, unknown>, at: string): Violation | undefined {
  if (tool.type !== 'custom') return tool.custom === undefined ? undefined : bad(`Unknown parameter: '${at}.custom'.`, `${at}.custom`, 'unknown_parameter');
  if (tool.function !== undefined) return bad(`Unknown parameter: '${at}.function'.`, `${at}.function`, 'unknown_parameter');
  const { name, format } = Object(tool.custom) as { name?: unknown; format?: { type?: string; grammar?: { syntax?: string; definition?: string } } };
  if (!TOOL_NAME.test(String(name))) return bad(`Invalid '${at}.custom.name'.`, `${at}.custom.name`);
  const { grammar } = format ?? {};
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type !== 'grammar' || (grammar?.syntax !== 'lark' && grammar?.syntax !== 'regex') || typeof grammar.definition !== 'string')
    return bad(`Invalid '${at}.custom.format'.`, `${at}.custom.format`);
  return undefined;
}

function findMessageViolation(messages: unknown): Violation | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return bad("Invalid 'messages': empty array.", 'messages', 'empty_array');
  let open = new Set<string>();
  for (const [index, message] of (messages as ChatMessage[]).entries()) {
    const at = `messages[${index}]`;
    if (message === null || typeof message !== 'object' || !ROLES.has(message.role))
      return bad(`Invalid value for '${at}.role'.`, `${at}.role`, 'invalid_value');
    if (message.role === 'tool') {
      if (!message.tool_call_id || !open.delete(message.tool_call_id))
        return bad("messages with role 'tool' must be a response to a preceding message with 'tool_calls'.", at);
    } else if (open.size > 0) return unanswered(open, index);
    const problem = findContentViolation(message, at);
    if (problem) return problem;
    if (message.role === 'assistant') open = new Set((message.tool_calls ?? []).map((one) => one.id));
  }
  return open.size > 0 ? unanswered(open, messages.length) : undefined;
}

function unanswered(open: Set<string>, index: number): Violation {
  return bad(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...open].join()}`,
    `messages[${index}]`,
  );
}

function findContentViolation(message: ChatMessage, at: string): Violation | undefined {
  const { role, content, tool_calls } = message;
  for (const field of ['partial', 'degraded', 'hermes']) if (field in message) return bad(`Unknown parameter: '${at}.${field}'.`, at, 'unknown_parameter');
  if (content === null || content === undefined) {
    if (role !== 'assistant' || !(tool_calls || message.refusal || message.function_call || message.audio))
      return bad(`Invalid value for '${at}.content': got null.`, `${at}.content`);
  } else if (typeof content !== 'string') {
    if (!Array.isArray(content) || content.length === 0) return bad(`Invalid type for '${at}.content'.`, `${at}.content`);
    for (const part of content) if (typeof part?.type !== 'string') return bad(`Invalid '${at}.content': a part without a type.`, `${at}.content`);
  }
  if (tool_calls === undefined) return undefined;
  if (!Array.isArray(tool_calls) || tool_calls.length === 0) return bad(`Invalid '${at}.tool_calls': empty array.`, `${at}.tool_calls`);
  for (const one of tool_calls) {
    if (!one.id || one.id.length > LONGEST_CALL_ID)
      return bad(`Invalid '${at}.tool_calls[0].id': string too long. Expected a string with maximum length ${LONGEST_CALL_ID}.`, `${at}.tool_calls`);
    if (one.type === 'custom' && (one.function !== undefined || typeof Object(one.custom).input !== 'string'))
      return bad(`Invalid '${at}.tool_calls.custom'.`, `${at}.tool_calls`);
    if (one.type === 'function' && (!TOOL_NAME.test(one.function?.name ?? '') || typeof one.function.arguments !== 'string'))
      return bad(`Invalid '${at}.tool_calls.function.name': string does not match pattern.`, `${at}.tool_calls`, 'invalid_value');
  }
  return undefined;
}
