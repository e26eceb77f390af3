/** OpenAI chat completions: the canonical form. Unknown members are kept and go through. Source: OpenAI's OpenAPI description 2.3. */

export interface FunctionCall {
  name: string;
  /** JSON text exactly as the model wrote it; never parsed and written anew. */
  arguments: string;
}
export interface ToolCall {
  id: string;
  type: string;
  function: FunctionCall;
  [field: string]: unknown;
}
export interface ContentPart {
  type: string;
  text?: string;
  image_url?: { url: string; detail?: string };
  [field: string]: unknown;
}
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'function';
export interface ChatMessage {
  role: Role;
  content?: string | ContentPart[] | null;
  name?: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  /** Thinking in plain text (DeepSeek and others; Anthropic's is translated to it). */
  reasoning_content?: string | null;
  refusal?: string | null;
  [field: string]: unknown;
}
export interface FunctionTool {
  type: string;
  function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean | null; [field: string]: unknown };
  [field: string]: unknown;
}
export interface ChatRequest {
  model?: string | null;
  messages: ChatMessage[];
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean; [field: string]: unknown } | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  n?: number | null;
  tools?: FunctionTool[];
  tool_choice?: unknown;
  user?: string;
  [field: string]: unknown;
}
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: number | null; [field: string]: unknown } | null;
  completion_tokens_details?: { reasoning_tokens?: number | null; [field: string]: unknown } | null;
  [field: string]: unknown;
}
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call' | (string & {});
export interface Choice {
  index: number;
  message: ChatMessage;
  logprobs?: unknown;
  finish_reason: FinishReason | null;
  [field: string]: unknown;
}
export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: Choice[];
  usage?: Usage | null;
  [field: string]: unknown;
}
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments?: string };
  /** A call of a tool whose input is free text. */
  custom?: { name?: string; input?: string };
}
export interface Delta {
  role?: Role;
  content?: string | null;
  reasoning_content?: string | null;
  refusal?: string | null;
  tool_calls?: ToolCallDelta[];
  [field: string]: unknown;
}
export interface ChunkChoice {
  index: number;
  delta?: Delta;
  logprobs?: unknown;
  finish_reason?: FinishReason | null;
  [field: string]: unknown;
}
/** One event of a stream. `error` stands in it when an upstream breaks off that way. */
export interface ChatChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: ChunkChoice[];
  usage?: Usage | null;
  [field: string]: unknown;
}

/** The text of a message: its string, or its text parts joined by a line break; '' when there is none. */
export function messageText(message: ChatMessage): string {
  const { content } = message;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter((part) => part.type === 'text' && typeof part.text === 'string')
    .map((part) => part.text)
    .join('\n');
}

/** Is this text, reasoning or a tool call: something a client has seen once it is sent? */
export function hasContent(chunk: ChatChunk): boolean {
  for (const choice of chunk.choices ?? []) {
    const delta = choice.delta;
    if (
      delta &&
      (delta.content || delta.reasoning_content || delta.reasoning || delta.refusal || delta.tool_calls?.length || delta.function_call || delta.audio)
    )
      return true;
  }
  return false;
}
