import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatMessage } from '../../wire/chat.ts';
import { makerOf, toMaker } from '../../wire/maker.ts';
import { isOpenAiModel } from './family.ts';

/**
 * Reasoning in the history goes back to the vendor that made it: DeepSeek answers 400 when it is missing on a turn with tool
 * calls. Where nobody knows who made it (a client without a session sent it), OpenAI's models get none, and signed thinking
 * is Anthropic's alone. `reasoning: send | strip` decides otherwise.
 */
export function withoutForeignReasoning(messages: ChatMessage[], target: UpstreamTarget): ChatMessage[] {
  if (target.reasoning === 'send') return messages;
  const own = toMaker(target);
  const guess = isOpenAiModel(target);
  const isForeign = (message: ChatMessage): boolean => {
    if (message.role !== 'assistant' || !('reasoning_content' in message || 'reasoning' in message || 'reasoning_details' in message)) return false;
    if (target.reasoning === 'strip') return true;
    const maker = makerOf(message);
    return maker === undefined ? guess || 'thinking_blocks' in message : maker !== own;
  };
  return messages.some(isForeign) ? messages.map((message) => (isForeign(message) ? bare(message) : message)) : messages;
}

/**
 * DeepSeek's thinking mode answers 400 where an assistant message with tool calls has no `reasoning_content`, if only an empty one: what
 * another vendor made has none.
 */
export function withEmptyReasoning(messages: ChatMessage[], target: UpstreamTarget): ChatMessage[] {
  if (target.quirks.empty_reasoning !== true) return messages;
  const lacks = ({ role, tool_calls, reasoning_content }: ChatMessage): boolean =>
    role === 'assistant' && Boolean(tool_calls?.length) && typeof reasoning_content !== 'string';
  return messages.some(lacks) ? messages.map((message) => (lacks(message) ? { ...message, reasoning_content: '' } : message)) : messages;
}

function bare(message: ChatMessage): ChatMessage {
  const { reasoning_content: _content, reasoning: _reasoning, reasoning_details: _details, ...rest } = message;
  return rest as ChatMessage;
}
