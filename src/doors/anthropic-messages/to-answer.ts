import type { Facts } from '../../contracts/exchange.ts';
import { ANTHROPIC_FINISH } from '../../wire/anthropic-finish.ts';
import type { ChatCompletion, ChatMessage, FinishReason, Usage } from '../../wire/chat.ts';
import { messageText } from '../../wire/chat.ts';
import { isRecord, parseJson } from '../../wire/json.ts';

type Block = Record<string, unknown>;

const STOP_REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
};
/**
 * The upstream's own word where it is one of Anthropic's and says the same (a later round may have ended otherwise).
 * `refused`: OpenAI's models say a refusal beside the content, and end it like every other answer.
 */
export function toStopReason(finish: FinishReason | null | undefined, facts: Facts, refused: boolean): string {
  const said = facts.upstreamFinishReason;
  if (said !== undefined && ANTHROPIC_FINISH[said] === (finish ?? 'stop')) return said;
  const reason = STOP_REASONS[finish ?? 'stop'] ?? 'end_turn';
  return refused && reason === 'end_turn' ? 'refusal' : reason;
}

/** OpenAI's prompt includes what the cache read and wrote, Anthropic's input does not. */
export function toAnthropicUsage(usage: Usage | null | undefined): Record<string, unknown> {
  const read = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  const written = usage?.prompt_tokens_details?.cache_write_tokens ?? 0;
  const thinking = usage?.completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    input_tokens: Math.max(0, (usage?.prompt_tokens ?? 0) - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: usage?.completion_tokens ?? 0,
    ...(thinking > 0 ? { output_tokens_details: { thinking_tokens: thinking } } : {}),
  };
}

export function toMessageId(id: string): string {
  return id.startsWith('msg_') ? id : `msg_${id.replace(/[^a-zA-Z0-9_-]/gu, '_')}`;
}

export function toAnswer(completion: ChatCompletion, facts: Facts): Record<string, unknown> {
  const [choice] = completion.choices;
  return {
    id: toMessageId(completion.id),
    type: 'message',
    role: 'assistant',
    model: completion.model,
    content: choice ? toBlocks(choice.message) : [],
    stop_reason: toStopReason(choice?.finish_reason, facts, Boolean(choice?.message.refusal)),
    stop_sequence: null,
    usage: toAnthropicUsage(completion.usage),
  };
}

function toBlocks(message: ChatMessage): Block[] {
  const text = messageText(message) || message.refusal || '';
  const pieces: Block[] = text === '' ? [] : [{ type: 'text', text }];
  for (const call of message.tool_calls ?? [])
    pieces.push({ type: 'tool_use', id: call.id, name: call.function.name, input: toInput(call.function.arguments) });
  const signed = toThinking(message.thinking_blocks);
  if (signed.length === 0 && message.reasoning_content) return [{ type: 'thinking', thinking: message.reasoning_content, signature: '' }, ...pieces];
  const slots: Block[][] = Array.from({ length: pieces.length + 1 }, () => []);
  for (const { position, block } of signed) slots[Math.min(position, pieces.length)]?.push(block);
  return slots.flatMap((before, index) => [...before, ...pieces.slice(index, index + 1)]);
}

/** Signed blocks as Anthropic made them, and where they stood. */
export function toThinking(blocks: unknown): { position: number; block: Block }[] {
  if (!Array.isArray(blocks)) return [];
  return blocks.filter(isRecord).map(({ position, ...block }) => ({ position: typeof position === 'number' ? Math.max(0, position) : 0, block }));
}

/** Arguments that a length limit cut are no JSON: an empty input is what a client can read, and the stop reason tells. */
function toInput(text: string): unknown {
  try {
    const value = text.trim() === '' ? {} : parseJson(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
