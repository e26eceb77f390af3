/** Anthropic's request shapes as far as hermes writes them. Source: @anthropic-ai/sdk, resources/messages. */
export interface Block {
  type: string;
  [field: string]: unknown;
}
export interface Turn {
  role: 'user' | 'assistant';
  content: Block[];
}
export interface WireTool {
  /** Absent of a toolset. */
  name?: string;
  [field: string]: unknown;
}
export interface ToolChoice {
  type: 'auto' | 'any' | 'tool' | 'none';
  name?: string;
  disable_parallel_tool_use?: boolean;
}

/** Anthropic refuses empty and blank text blocks wherever they stand. */
export function textBlock(text: unknown): Block | undefined {
  return typeof text === 'string' && text.trim() !== '' ? { type: 'text', text } : undefined;
}
