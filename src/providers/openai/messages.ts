import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatMessage, ContentPart } from '../../wire/chat.ts';
import { isOthersModel } from './family.ts';
import { createIdMap, type IdMap } from './tool-ids.ts';

/** The messages as this upstream takes them. The very same array when nothing must be changed; never the caller's objects changed. */
export function toMessages(messages: ChatMessage[], target: UpstreamTarget): ChatMessage[] {
  const ids = createIdMap(messages, target);
  const options: Options = { ids, developer: knowsDeveloper(target) };
  let changed = false;
  const out = messages.map((message) => {
    const next = toMessage(message, options);
    changed ||= next !== message;
    return next;
  });
  return changed ? out : messages;
}

interface Options {
  ids: IdMap | undefined;
  developer: boolean;
}

/** `developer` is OpenAI's own newer word for `system`; the templates of other models refuse it. */
function knowsDeveloper(target: UpstreamTarget): boolean {
  const written = target.quirks.developer_role;
  return typeof written === 'boolean' ? written : !isOthersModel(target);
}

function toMessage(message: ChatMessage, options: Options): ChatMessage {
  const next = toRole(message, options);
  const content = toContent(next);
  return content === undefined || content === next.content ? next : { ...next, content };
}

function toRole(message: ChatMessage, options: Options): ChatMessage {
  if (message.role === 'assistant') return toAssistant(message, options);
  if (message.role === 'developer' && !options.developer) return { ...message, role: 'system' };
  if (message.role === 'tool' && options.ids && message.tool_call_id) return { ...message, tool_call_id: options.ids(message.tool_call_id) };
  return message;
}

function toAssistant(message: ChatMessage, { ids }: Options): ChatMessage {
  let next = message;
  if (next.tool_calls !== undefined && !next.tool_calls?.length) {
    // An empty list of calls is refused.
    const { tool_calls: _calls, ...rest } = next;
    next = rest as ChatMessage;
  }
  if (ids && next.tool_calls) next = { ...next, tool_calls: next.tool_calls.map((call) => ({ ...call, id: ids(call.id) })) };
  return next;
}

/** Contents that the API refuses: an empty list of parts, empty text parts, and nothing at all where there must be something. */
function toContent(message: ChatMessage): ChatMessage['content'] {
  const { role, content, tool_calls } = message;
  if (Array.isArray(content)) {
    const parts = content.some(isEmptyText) ? content.filter((part) => !isEmptyText(part)) : content;
    if (parts.length > 0) return parts.length === content.length ? content : parts;
    return role === 'assistant' && tool_calls ? null : '';
  }
  if (content !== null && content !== undefined) return content;
  const said = role === 'assistant' && (tool_calls || message.function_call || message.refusal || message.audio);
  return said ? content : '';
}

function isEmptyText(part: ContentPart): boolean {
  return part.type === 'text' && part.text === '';
}
