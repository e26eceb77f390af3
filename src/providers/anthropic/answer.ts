import { HermesError } from '../../contracts/errors.ts';
import type { ChatCompletion, ChatMessage, ToolCall } from '../../wire/chat.ts';
import { isRecord, parseJsonBytes, stringifyJson } from '../../wire/json.ts';
import type { NameMap } from '../../wire/tool-names.ts';
import { setUpstreamFinish } from '../../wire/upstream-finish.ts';
import { toStreamError } from './failure.ts';
import { latest, mapFinish, toServiceTier, toUsage } from './usage.ts';

/** What the way back must know of the call. */
export interface AnswerContext {
  names: NameMap;
  /** The caller speaks of `functions`: it is answered with `function_call`. */
  legacy: boolean;
}

export function toCompletion(bytes: Uint8Array, context: AnswerContext): ChatCompletion {
  const body = parseAnswer(bytes);
  const reason = typeof body.stop_reason === 'string' ? body.stop_reason : '';
  const message = toMessage(Array.isArray(body.content) ? body.content : [], context.names);
  const said = Boolean(message.content || message.reasoning_content || message.tool_calls || message.thinking_blocks);
  // Silence with a reason is an answer (Claude ends a turn without a word when a tool has said it all); without one, another try may say something.
  if (!said && (reason === '' || reason === 'tool_use')) throw emptyAnswer();
  const explanation = refusalText(body.stop_details);
  if (reason === 'refusal' && explanation) message.refusal = explanation;
  const finish = mapFinish(reason, message.tool_calls !== undefined);
  const usage = toUsage(latest({}, body.usage));
  const completion: ChatCompletion = {
    id: typeof body.id === 'string' ? body.id : 'msg_unknown',
    object: 'chat.completion',
    created: 0,
    model: typeof body.model === 'string' ? body.model : '',
    choices: [
      {
        index: 0,
        message: context.legacy ? toLegacy(message) : message,
        logprobs: null,
        finish_reason: context.legacy && finish === 'tool_calls' ? 'function_call' : finish,
      },
    ],
    ...(usage ? { usage } : {}),
    ...toServiceTier(latest({}, body.usage)),
  };
  if (reason) setUpstreamFinish(completion, reason);
  return completion;
}

function parseAnswer(bytes: Uint8Array): Record<string, unknown> {
  let body: unknown;
  try {
    body = parseJsonBytes(bytes);
  } catch (cause) {
    throw emptyAnswer(cause);
  }
  if (!isRecord(body)) throw emptyAnswer();
  if (body.type === 'error' || isRecord(body.error)) throw toStreamError(stringifyJson(body));
  if (!Array.isArray(body.content)) throw emptyAnswer();
  return body;
}

function emptyAnswer(cause?: unknown): HermesError {
  return new HermesError('upstream_empty_answer', 'The model gave no answer; try again.', { cause });
}

/** The upstream's explanation of a refusal. */
export function refusalText(details: unknown): string | undefined {
  return isRecord(details) && typeof details.explanation === 'string' && details.explanation !== '' ? details.explanation : undefined;
}

function toMessage(blocks: readonly unknown[], names: NameMap): ChatMessage {
  let text = '';
  let reasoning = '';
  const calls: ToolCall[] = [];
  const thinking: Record<string, unknown>[] = [];
  for (const block of blocks) {
    if (!isRecord(block)) continue;
    if (block.type === 'text' && typeof block.text === 'string') text += block.text;
    else if (block.type === 'tool_use') calls.push(toToolCall(block, names));
    else if (block.type === 'thinking' || block.type === 'redacted_thinking') {
      if (typeof block.thinking === 'string') reasoning += block.thinking;
      thinking.push(keepThinking(block, (text === '' ? 0 : 1) + calls.length));
    }
  }
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(thinking.length > 0 ? { thinking_blocks: thinking } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function toToolCall(block: Record<string, unknown>, names: NameMap): ToolCall {
  return {
    id: String(block.id),
    type: 'function',
    function: { name: names.fromWire(String(block.name)), arguments: isRecord(block.input) ? stringifyJson(block.input) : '{}' },
  };
}

/** A signed block for the way back; `position`: how many other blocks stood before it, when it was not the first. */
export function keepThinking(block: Record<string, unknown>, position: number): Record<string, unknown> {
  const kept =
    block.type === 'thinking'
      ? { type: 'thinking', thinking: block.thinking ?? '', signature: block.signature ?? '' }
      : { type: 'redacted_thinking', data: block.data };
  return position > 0 ? { ...kept, position } : kept;
}

function toLegacy(message: ChatMessage): ChatMessage {
  const { tool_calls, ...rest } = message;
  const call = tool_calls?.[0];
  return call ? { ...rest, function_call: { name: call.function.name, arguments: call.function.arguments } } : message;
}
