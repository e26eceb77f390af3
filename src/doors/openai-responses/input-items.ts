import { createHash } from 'node:crypto';
import { type ChatMessage, type ContentPart, messageText } from '../../wire/chat.ts';
import { toReasoningItem } from './to-response.ts';

type Item = Record<string, unknown>;

/** What a response was made of, as `GET /v1/responses/{id}/input_items` lists it: each item has an id of its own, the same every time. */
export function toInputItems(responseId: string, messages: readonly ChatMessage[]): Item[] {
  const own = createHash('sha256').update(responseId).digest('hex').slice(0, 24);
  return messages.flatMap(toItems).map(({ type, ...item }, index) => ({ id: `${PREFIXES[String(type)] ?? 'item'}_${own}${index}`, type, ...item }));
}

const PREFIXES: Readonly<Record<string, string>> = { message: 'msg', function_call: 'fc', function_call_output: 'fco', reasoning: 'rs' };

function toItems(message: ChatMessage): Item[] {
  const status = 'completed';
  if (message.role === 'tool')
    return [
      {
        type: 'function_call_output',
        status,
        call_id: message.tool_call_id ?? '',
        output: typeof message.content === 'string' ? message.content : toParts(message),
      },
    ];
  if (message.role !== 'assistant') return [{ type: 'message', status, role: message.role, content: toParts(message) }];
  const { id: _id, ...reasoning } = toReasoningItem('', message.reasoning_content ?? '', message.thinking_blocks);
  const text = messageText(message);
  return [
    ...(message.reasoning_content || message.thinking_blocks ? [reasoning] : []),
    ...(text === '' ? [] : [{ type: 'message', status, role: 'assistant', content: [{ type: 'output_text', text, annotations: [], logprobs: [] }] }]),
    ...(message.tool_calls ?? []).map(({ id, function: called }) => ({
      type: 'function_call',
      status,
      call_id: id,
      name: called.name,
      arguments: called.arguments,
    })),
  ];
}

function toParts({ content }: ChatMessage): Item[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }];
  return (content ?? []).map(toPart);
}

/** The canonical part in this form's words; see to-messages.ts. */
function toPart(part: ContentPart): Item {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  if (part.type === 'image_url') return { type: 'input_image', image_url: part.image_url?.url, detail: part.image_url?.detail ?? 'auto' };
  if (part.type === 'file') return { type: 'input_file', ...Object(part.file) };
  return { ...part };
}
