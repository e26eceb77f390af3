import type { UpstreamTarget } from '../../contracts/exchange.ts';

/** Names as vendors and routers in between write them: `openai/gpt-5.1`, `gpt-4o-2024-08-06`. */
const OPENAI = /^(?:openai\/)?(?:gpt-|chatgpt-|o\d)/;
const REASONING = /^(?:openai\/)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!\d*-chat))/;

/** OpenAI's own model, or its own address: what it answers 400 to is known. */
export function isOpenAiModel(target: UpstreamTarget): boolean {
  return OPENAI.test(target.modelName) || /\/\/api\.openai\.com(\/|:|$)/.test(target.apiBase);
}

/** These answer 400 `unsupported_parameter` to `max_tokens`. */
export function isReasoningModel(modelName: string): boolean {
  return REASONING.test(modelName);
}

/**
 * `reasoning_effort`. Beside function tools it is a 400 in the chat completions of gpt-5.2 and later (openai-openapi issue
 * 541: "use /v1/responses"); the first small models and the chat ones never took it.
 */
export function takesEffort(modelName: string, withTools: boolean): boolean {
  if (!isReasoningModel(modelName) || /o1-(?:mini|preview)|-chat/.test(modelName)) return false;
  return !withTools || !/gpt-(?:5\.(?:[2-9]|\d\d)|[6-9]|\d\d)/.test(modelName);
}

/** Models of others that are served by servers compatible with OpenAI's. What is not known is left as the caller wrote it. */
const OTHERS =
  /deepseek|qwen|qwq|glm|moonshot|kimi|mi[sx]tral|codestral|magistral|ministral|devstral|pixtral|llama|gemma|gemini|baichuan|doubao|ernie|hunyuan|minimax|abab|command-|grok|step-|yi-|phi-|mimo/i;

export function isOthersModel(target: UpstreamTarget): boolean {
  return !isOpenAiModel(target) && OTHERS.test(target.modelName);
}
