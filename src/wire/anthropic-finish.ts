import type { FinishReason } from './chat.ts';

/** Anthropic's stop reasons, which are finer, and what the canonical form says for each. */
export const ANTHROPIC_FINISH: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};
