import type { TokenCounts } from '../contracts/exchange.ts';
import type { ChatMessage, ChatRequest } from '../wire/chat.ts';

export const NO_TOKENS: TokenCounts = Object.freeze({ input: 0, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 });

/** English prose has 4.5 bytes a token, Chinese 4.0 (o200k_base, measured: reference/wire.md, section 7). */
const BYTES_PER_TOKEN = 4;
/** What an image costs when nobody says: high detail, 1024 pixels square. */
const TOKENS_PER_IMAGE = 765;
const TOKENS_PER_MESSAGE = 4;

export function estimateTextTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** What a request costs as input, for calls whose usage never came. Encoded images and sounds do not count by their length. */
export function estimateInputTokens(request: ChatRequest): number {
  let tokens = request.tools ? estimateTextTokens(Buffer.byteLength(JSON.stringify(request.tools))) : 0;
  for (const message of request.messages) tokens += TOKENS_PER_MESSAGE + estimateMessage(message);
  return tokens;
}

function estimateMessage(message: ChatMessage): number {
  let bytes = byteLength(message.reasoning_content) + byteLength(message.name);
  let tokens = 0;
  if (typeof message.content === 'string') bytes += byteLength(message.content);
  else
    for (const part of message.content ?? []) {
      if (typeof part.text === 'string') bytes += byteLength(part.text);
      else tokens += TOKENS_PER_IMAGE;
    }
  for (const call of message.tool_calls ?? []) bytes += byteLength(call.function?.name) + byteLength(call.function?.arguments);
  return tokens + estimateTextTokens(bytes);
}

function byteLength(text: unknown): number {
  return typeof text === 'string' ? Buffer.byteLength(text) : 0;
}
