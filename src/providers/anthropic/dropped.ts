import type { ChatRequest } from '../../wire/chat.ts';

/**
 * OpenAI's parameters that Anthropic has no counterpart for: left out and named. Values that say nothing (the default) are
 * left out in silence.
 */
const WITHOUT_COUNTERPART: Readonly<Record<string, readonly unknown[]>> = {
  seed: [],
  frequency_penalty: [0],
  presence_penalty: [0],
  logit_bias: [],
  logprobs: [false],
  top_logprobs: [0],
  modalities: [],
  audio: [],
  prediction: [],
  store: [false],
  metadata: [],
  verbosity: ['medium'],
  web_search_options: [],
  moderation: [],
  prompt_cache_key: [],
  prompt_cache_options: [],
  prompt_cache_retention: [],
  prompt_cache_breakpoint: [],
};
/** Translated elsewhere, or meant for hermes and the transport. */
const HANDLED = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'stop',
  'temperature',
  'top_p',
  'response_format',
  'reasoning_effort',
  'user',
  'safety_identifier',
  'service_tier',
  'anthropic',
]);
/** Anthropic's own parameters, which go through as they are; `thinking` and `top_k` are fitted to the model. */
export const NATIVE_PARAMETERS = ['cache_control', 'container', 'context_management', 'inference_geo', 'mcp_servers', 'speed'] as const;
const FITTED = new Set<string>(['thinking', 'top_k', 'output_config', ...NATIVE_PARAMETERS]);

/** Names of what the request says and Anthropic cannot be told. */
export function droppedParameters(request: ChatRequest): string[] {
  return Object.entries(request)
    .filter(([name, value]) => value !== null && value !== undefined && !HANDLED.has(name) && !FITTED.has(name) && !saysNothing(name, value))
    .map(([name]) => name);
}

function saysNothing(name: string, value: unknown): boolean {
  if (name === 'modalities') return Array.isArray(value) && value.every((modality) => modality === 'text');
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 0) return true;
  return WITHOUT_COUNTERPART[name]?.includes(value) ?? false;
}
