import { HermesError } from '../../contracts/errors.ts';
import type { ChatMessage, ContentPart, ToolCall } from '../../wire/chat.ts';
import { isRecord, stringifyJson } from '../../wire/json.ts';
import { rememberPlace, toImagePart } from '../../wire/native-blocks.ts';

type Block = Record<string, unknown> & { type: string };

/**
 * Anthropic's messages as canonical ones. Everything that the canonical form cannot say stays beside its part, message or
 * call as `anthropic` (see wire/carriage), so that an Anthropic upstream gets the same blocks again; text is never held twice.
 */
export function toMessages(system: unknown, messages: unknown): ChatMessage[] {
  if (!Array.isArray(messages) || messages.length === 0) throw refuse('messages', "'messages' must hold at least one message.");
  return [...toSystem(system, 'system'), ...messages.flatMap((message, index) => toMessage(message, `messages.${index}`))];
}

function toSystem(system: unknown, path: string): ChatMessage[] {
  if (system === undefined || system === null || system === '') return [];
  if (typeof system === 'string') return [{ role: 'system', content: system }];
  const content = toContent(blocksOf(system, path), path);
  return content.length > 0 ? [{ role: 'system', content: plain(content) }] : [];
}

function toMessage(message: unknown, path: string): ChatMessage[] {
  if (!isRecord(message)) throw refuse(path, `'${path}' must be an object with a role and content.`);
  const { role, content } = message;
  // Newer models take system messages in the middle; where they stood is kept.
  if (role === 'system') return toSystem(content, `${path}.content`);
  if (role !== 'user' && role !== 'assistant') throw refuse(`${path}.role`, `'${path}.role' must be user or assistant.`);
  if (typeof content === 'string') return [{ role, content }];
  const blocks = blocksOf(content, `${path}.content`);
  return role === 'user' ? toUser(blocks, `${path}.content`) : [toAssistant(blocks, `${path}.content`)];
}

function blocksOf(content: unknown, path: string): Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) throw refuse(path, `'${path}' must be a string or a list of blocks.`);
  return content.map((block, index) => {
    if (!isRecord(block) || typeof block.type !== 'string') throw refuse(`${path}.${index}`, `'${path}.${index}' must be an object with a type.`);
    return { ...block, type: block.type };
  });
}

/** A user turn: its tool results are messages of their own and stand first. */
function toUser(blocks: Block[], path: string): ChatMessage[] {
  const results = blocks.flatMap((block, index) => (block.type === 'tool_result' ? [toResult(block, path, index)] : []));
  const rest = blocks.filter((block) => block.type !== 'tool_result');
  if (rest.length === 0) return results.length > 0 ? results : [{ role: 'user', content: [] }];
  return [...results, { role: 'user', content: plain(toContent(rest, path, blocks)) }];
}

function toResult(block: Block, path: string, index: number): ChatMessage {
  const { type: _type, tool_use_id, content, ...more } = block;
  if (typeof tool_use_id !== 'string') throw refuse(path, `A tool_result in '${path}' must name the call that it answers (tool_use_id).`);
  const parts = content === undefined || content === null ? [] : toContent(blocksOf(content, path), `${path}.${index}.content`);
  return { role: 'tool', tool_call_id: tool_use_id, content: parts.length === 0 ? '' : plain(parts), ...carried(more) };
}

function toAssistant(blocks: Block[], path: string): ChatMessage {
  const parts: ContentPart[] = [];
  const calls: ToolCall[] = [];
  const thinking: Record<string, unknown>[] = [];
  let reasoning = '';
  for (const block of blocks) {
    if (block.type === 'thinking' || block.type === 'redacted_thinking') {
      const position = parts.length + calls.length;
      thinking.push(position > 0 ? { ...block, position } : block);
      if (typeof block.thinking === 'string') reasoning += block.thinking;
    } else if (block.type === 'tool_use') calls.push(toCall(block, path));
    else parts.push(...toContent([block], path, blocks));
  }
  return {
    role: 'assistant',
    content: parts.length > 0 ? plain(parts) : null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(thinking.length > 0 ? { thinking_blocks: thinking } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function toCall(block: Block, path: string): ToolCall {
  const { type: _type, id, name, input, ...more } = block;
  if (typeof id !== 'string' || typeof name !== 'string') throw refuse(path, `A tool_use in '${path}' must have an id and a name.`);
  return { id, type: 'function', function: { name, arguments: stringifyJson(isRecord(input) ? input : {}) }, ...carried(more) };
}

/** `all`: where the blocks stand among others. */
function toContent(blocks: Block[], path: string, all = blocks): ContentPart[] {
  return blocks.map((block): ContentPart => {
    const { type, ...fields } = block;
    if (type === 'text') {
      const { text, ...more } = fields;
      if (typeof text !== 'string') throw refuse(path, `A text block in '${path}' must have a text.`);
      return { type: 'text', text, ...carried(more) };
    }
    const known = type === 'image' ? toImage(fields) : type === 'document' ? toFile(fields) : undefined;
    if (known) return known;
    rememberPlace(block, `${path}.${all.indexOf(block)}`);
    return { type: 'anthropic', block };
  });
}

function toImage(fields: Record<string, unknown>): ContentPart | undefined {
  const { source, ...more } = fields;
  const image = toImagePart(source);
  return image && { ...image, ...carried(more) };
}

/** A document of data. One of text stays a block of its own: OpenAI's chat takes PDF files alone. */
function toFile(fields: Record<string, unknown>): ContentPart | undefined {
  const { source, title, ...more } = fields;
  if (!isRecord(source) || source.type !== 'base64' || typeof source.data !== 'string') return undefined;
  const name = typeof title === 'string' && title !== '' ? title : undefined;
  // OpenAI wants a name; `title: null` takes it away again for Anthropic.
  const extras = carried(name ? more : { ...more, title: null });
  return { type: 'file', file: { filename: name ?? 'document.pdf', file_data: `data:${source.media_type};base64,${source.data}` }, ...extras };
}

/** A single text without extras is what everybody understands: a string. */
function plain(content: ContentPart[]): string | ContentPart[] {
  const [only] = content;
  return content.length === 1 && only?.type === 'text' && Object.keys(only).length === 2 ? (only.text ?? '') : content;
}

function carried(more: Record<string, unknown>): { anthropic?: Record<string, unknown> } {
  return Object.keys(more).length > 0 ? { anthropic: more } : {};
}

export function refuse(param: string, message: string): HermesError {
  return new HermesError('invalid_request', message, { param });
}
