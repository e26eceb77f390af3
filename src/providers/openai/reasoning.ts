import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatMessage } from '../../wire/chat.ts';
import { isOpenAiModel } from './family.ts';

/**
 * Reasoning in the history goes back to those that made it: DeepSeek answers 400 when it is missing on a turn with tool
 * calls. OpenAI's models take none, and signed thinking is Anthropic's alone. `reasoning: send | strip` decides otherwise.
 */
export function withoutForeignReasoning(messages: ChatMessage[], target: UpstreamTarget): ChatMessage[] {
  if (target.reasoning === 'send') return messages;
  const all = target.reasoning === 'strip' || isOpenAiModel(target);
  const foreign = (message: ChatMessage): boolean =>
    message.role === 'assistant' &&
    (all || 'thinking_blocks' in message) &&
    ('reasoning_content' in message || 'reasoning' in message || 'reasoning_details' in message);
  return messages.some(foreign) ? messages.map((message) => (foreign(message) ? bare(message) : message)) : messages;
}

function bare(message: ChatMessage): ChatMessage {
  const { reasoning_content: _content, reasoning: _reasoning, reasoning_details: _details, ...rest } = message;
  return rest as ChatMessage;
}
