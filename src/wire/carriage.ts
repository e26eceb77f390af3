import { HermesError } from '../contracts/errors.ts';
import type { ChatMessage, ChatRequest, ContentPart, FunctionTool, Role, ToolCall } from './chat.ts';
import { isRecord } from './json.ts';
import { placeOf, toPlainParts } from './native-blocks.ts';

/**
 * What the canonical form cannot say itself travels in two members: `thinking_blocks` on assistant messages (Anthropic's
 * signed thinking, replayed unmodified to Anthropic alone) and `anthropic` (on the request, a message, a part, a tool or a
 * tool call: native fields such as `cache_control`; a part of the type `anthropic` is a whole native block). No other
 * provider's upstream may see them.
 */
const CARRIED = 'anthropic';

/**
 * The request without them, as every other upstream may see it; the very same object when there are none, so that an unchanged request is still known as such.
 * Native blocks are told as text where they are text. Throws `unsupported_parameter` for those of a user or a tool that cannot be told: another upstream may take them.
 */
export function withoutCarriage(request: ChatRequest): ChatRequest {
  const messages = imagesBehindResults(mapped(request.messages, cleanMessage));
  const tools = request.tools && mapped(request.tools, (tool: FunctionTool) => bare(tool));
  if (messages === request.messages && tools === request.tools && !(CARRIED in request)) return request;
  const { [CARRIED]: _carried, ...rest } = request;
  return { ...rest, messages, ...(tools ? { tools } : {}) };
}

function cleanMessage(message: ChatMessage, index: number): ChatMessage {
  const content = Array.isArray(message.content) ? cleanParts(message.content, message.role, index) : message.content;
  const calls = message.tool_calls && mapped(message.tool_calls, (call: ToolCall) => bare(call));
  const carried = CARRIED in message || 'thinking_blocks' in message;
  if (!carried && content === message.content && calls === message.tool_calls) return message;
  const { [CARRIED]: _carried, thinking_blocks: _thinking, ...rest } = message;
  return { ...rest, ...(content === undefined ? {} : { content }), ...(calls ? { tool_calls: calls } : {}) };
}

function cleanParts(parts: ContentPart[], role: Role, message: number): ContentPart[] {
  const known = parts.some((part) => part.type === CARRIED)
    ? parts.flatMap((part, index) => plainParts(part, role, `messages[${message}].content[${index}]`))
    : parts;
  return mapped(known, (part: ContentPart) => bare(part));
}

function plainParts(part: ContentPart, role: Role, path: string): ContentPart[] {
  if (part.type !== CARRIED) return [part];
  const block = isRecord(part.block) ? part.block : {};
  const plain = toPlainParts(block);
  // What the model's own side did (searches, code that it ran) led to the words behind it; a system's are settings.
  if (plain || (role !== 'user' && role !== 'tool')) return plain ?? [];
  const place = placeOf(block) ?? path;
  throw new HermesError(
    'unsupported_parameter',
    `The ${describe(block)} in '${place}' cannot be sent to this model: it reads text, images and PDF data. Send the content itself, or choose a model of Anthropic's.`,
    { param: place },
  );
}

function describe({ type, source }: Record<string, unknown>): string {
  return isRecord(source) ? `${type} with a source of the type ${JSON.stringify(source.type)}` : `block of the type ${JSON.stringify(type)}`;
}

function bare<T extends object>(value: T): T {
  if (!(CARRIED in value)) return value;
  const copy = { ...value };
  Reflect.deleteProperty(copy, CARRIED);
  return copy;
}

/** The same array when nothing in it changed. */
function mapped<T>(list: T[], change: (item: T, index: number) => T): T[] {
  let changed = false;
  const out = list.map((item, index) => {
    const next = change(item, index);
    changed ||= next !== item;
    return next;
  });
  return changed ? out : list;
}

/** Results of tools are text alone in OpenAI's form: their images stand in a user message behind the run of results. */
function imagesBehindResults(messages: ChatMessage[]): ChatMessage[] {
  if (!messages.some(hasImages)) return messages;
  const out: ChatMessage[] = [];
  let images: ContentPart[] = [];
  const flush = (): void => {
    if (images.length > 0) out.push({ role: 'user', content: images });
    images = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') flush();
    if (hasImages(message) && Array.isArray(message.content)) {
      images.push(...message.content.filter((part) => part.type !== 'text'));
      out.push({ ...message, content: message.content.filter((part) => part.type === 'text') });
    } else out.push(message);
  }
  flush();
  return out;
}

function hasImages({ role, content }: ChatMessage): boolean {
  return role === 'tool' && Array.isArray(content) && content.some((part) => part.type !== 'text');
}
