import type { Asked } from '../../contracts/door.ts';
import type { Facts } from '../../contracts/exchange.ts';
import type { ChatCompletion, Choice, FinishReason, Usage } from '../../wire/chat.ts';
import { messageText } from '../../wire/chat.ts';
import { isRecord, parseJsonBytes } from '../../wire/json.ts';
import { customNames, toInput } from './custom-tools.ts';
import { toLogprobs } from './logprobs.ts';
import { toResponseId } from './response-id.ts';
import { toEncryptedContent } from './signed-reasoning.ts';

type Fields = Record<string, unknown>;

/** The parts of a response that are known before the answer: its id, and the request's settings. */
export interface ResponseHead extends Fields {
  id: string;
}

/** Settings of the request that a response repeats, with OpenAI's defaults. */
const REPEATED: Readonly<Fields> = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: true,
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
  user: null,
};

/** The facts are those of the request that was sent: who joins it, or repeats it, is given its id. */
export function toHead(asked: Asked | undefined, { requestId, sessionId }: Facts = {}): ResponseHead {
  const body = asked ? bodyOf(asked) : {};
  const repeated = Object.entries(REPEATED).map(([name, preset]) => [name, withPreset(body[name], preset)]);
  const session = asked?.ask.store === false ? undefined : (sessionId ?? asked?.ask.sessionId);
  return { id: toResponseId(requestId ?? asked?.id ?? '', session), object: 'response', ...Object.fromEntries(repeated) };
}

/** Members that were left out have their defaults as well. */
function withPreset(given: unknown, preset: unknown): unknown {
  return isRecord(preset) && isRecord(given) ? { ...preset, ...given } : (given ?? preset);
}

function bodyOf(asked: Asked): Fields {
  const { bytes } = asked.inbound;
  if (bytes === undefined) return {};
  try {
    const body = parseJsonBytes(bytes);
    return isRecord(body) ? body : {};
  } catch {
    return {};
  }
}

/** How an answer ended, in this form's words. */
export function toEnding(finish: FinishReason | null | undefined): { status: 'completed' | 'incomplete'; incomplete_details: Fields | null } {
  if (finish === 'length') return { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  if (finish === 'content_filter') return { status: 'incomplete', incomplete_details: { reason: 'content_filter' } };
  return { status: 'completed', incomplete_details: null };
}

export function toResponseUsage(usage: Usage | null | undefined): Fields | null {
  if (!usage) return null;
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: {
      cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
      cache_write_tokens: usage.prompt_tokens_details?.cache_write_tokens ?? 0,
    },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0 },
    total_tokens: usage.total_tokens,
  };
}

/** Items of an answer; ids are made of the response's own. */
export const itemIds = {
  reasoning: (id: string, index: number): string => `rs_${id.slice(5)}_${index}`,
  message: (id: string, index: number): string => `msg_${id.slice(5)}_${index}`,
  call: (id: string, index: number): string => `fc_${id.slice(5)}_${index}`,
  customCall: (id: string, index: number): string => `ctc_${id.slice(5)}_${index}`,
};

export function toReasoningItem(id: string, text: string, thinkingBlocks: unknown): Fields {
  const encrypted = toEncryptedContent(thinkingBlocks);
  return { id, type: 'reasoning', summary: text === '' ? [] : [{ type: 'summary_text', text }], ...(encrypted ? { encrypted_content: encrypted } : {}) };
}

export function toResponse(completion: ChatCompletion, asked: Asked | undefined, facts?: Facts): ResponseHead {
  const head = toHead(asked, facts);
  const [choice] = completion.choices;
  const { status, incomplete_details } = toEnding(choice?.finish_reason);
  return {
    ...head,
    created_at: completion.created,
    completed_at: status === 'completed' ? completion.created : null,
    status,
    error: null,
    incomplete_details,
    model: completion.model,
    output: choice ? toOutput(head, choice, status) : [],
    ...(typeof completion.service_tier === 'string' ? { service_tier: completion.service_tier } : {}),
    usage: toResponseUsage(completion.usage ?? facts?.usage),
  };
}

function toOutput({ id, tools }: ResponseHead, { message, logprobs }: Choice, status: string): Fields[] {
  const output: Fields[] = [];
  if (message.reasoning_content || toEncryptedContent(message.thinking_blocks))
    output.push(toReasoningItem(itemIds.reasoning(id, output.length), message.reasoning_content ?? '', message.thinking_blocks));
  const content: Fields[] = [];
  const text = messageText(message);
  if (text !== '') content.push({ type: 'output_text', text, annotations: message.annotations ?? [], logprobs: toLogprobs(logprobs) });
  if (message.refusal) content.push({ type: 'refusal', refusal: message.refusal });
  if (content.length > 0 || !message.tool_calls?.length)
    output.push({
      id: itemIds.message(id, output.length),
      type: 'message',
      role: 'assistant',
      status,
      content: content.length > 0 ? content : [{ type: 'output_text', text: '', annotations: [], logprobs: [] }],
    });
  const custom = customNames(tools);
  for (const { id: call_id, function: called } of message.tool_calls ?? []) {
    const { name, arguments: text } = called;
    const common = { status: 'completed', call_id, name };
    output.push(
      custom.has(name)
        ? { id: itemIds.customCall(id, output.length), type: 'custom_tool_call', ...common, input: toInput(text) }
        : { id: itemIds.call(id, output.length), type: 'function_call', ...common, arguments: text },
    );
  }
  return output;
}
