import { HermesError } from '../../contracts/errors.ts';
import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatMessage, ContentPart } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { isOpenAiModel, isOthersModel } from './family.ts';
import { createIdMap, type IdMap } from './tool-ids.ts';

/** The messages as this upstream takes them. The very same array when nothing must be changed; never the caller's objects changed. */
export function toMessages(messages: ChatMessage[], target: UpstreamTarget): ChatMessage[] {
  if (isOpenAiModel(target)) for (const [index, message] of messages.entries()) refuseAddresses(message, `messages[${index}]`);
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

/** Characters of an address that an error repeats. */
const SHOWN = 200;

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

/** Files are read from their data or from the vendor's own store; only the Responses API, and Claude, fetch them. */
function refuseAddresses({ content }: ChatMessage, path: string): void {
  if (!Array.isArray(content)) return;
  for (const [index, { type, file }] of content.entries()) {
    if (type !== 'file' || !isRecord(file) || typeof file.file_url !== 'string') continue;
    const param = `${path}.content[${index}].file.file_url`;
    const shown = file.file_url.slice(0, SHOWN);
    throw new HermesError('invalid_value', `This model does not fetch files: send the file at ${shown} as its data (file_data), or ask a Claude model.`, {
      param,
    });
  }
}

function isEmptyText(part: ContentPart): boolean {
  return part.type === 'text' && part.text === '';
}
