import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatChunk, ChatCompletion, ChatMessage, ChatRequest, ChunkChoice, FunctionTool, ToolCall, ToolCallDelta } from '../../wire/chat.ts';
import { isRecord, parseJson, stringifyJson } from '../../wire/json.ts';
import { isOthersModel } from './family.ts';

type Body = Record<string, unknown>;
/** Names of tools whose input is free text. */
export type CustomNames = ReadonlySet<string>;

/**
 * Such tools come as functions with the one parameter `input`, and with the tool itself beside it (`custom`, as the Responses door writes it). OpenAI's
 * models are told of the tool; models of others, which know functions alone, of the function. In place; `request` is what the body was made of.
 */
export function writeCustomTools(body: Body, { tools, tool_choice, messages }: ChatRequest, target: UpstreamTarget): CustomNames | undefined {
  const names = new Set(tools?.filter(isCarried).map((tool) => tool.function.name));
  if (!tools || names.size === 0) return undefined;
  if (isOthersModel(target)) {
    body.tools = tools.map(({ custom: _custom, ...tool }) => tool);
    return undefined;
  }
  body.tools = tools.map((tool) => (isCarried(tool) ? { type: 'custom', custom: tool.custom } : tool));
  if (tool_choice) body.tool_choice = toChoice(tool_choice, names);
  body.messages = messages.map((message) => toMessage(message, names));
  return names;
}

function isCarried(tool: FunctionTool): boolean {
  return tool.type === 'function' && isRecord(tool.custom);
}

function toChoice(choice: unknown, names: CustomNames): unknown {
  if (!isRecord(choice)) return choice;
  const { function: called, allowed_tools: allowed } = choice;
  if (isRecord(called) && names.has(String(called.name))) return { type: 'custom', custom: { name: called.name } };
  if (!isRecord(allowed) || !Array.isArray(allowed.tools)) return choice;
  return { ...choice, allowed_tools: { ...allowed, tools: allowed.tools.map((tool) => toChoice(tool, names)) } };
}

function toMessage(message: ChatMessage, names: CustomNames): unknown {
  const isCustom = (call: ToolCall): boolean => call.function !== undefined && names.has(call.function.name);
  if (!message.tool_calls?.some(isCustom)) return message;
  return { ...message, tool_calls: message.tool_calls.map((call) => (isCustom(call) ? toCustomCall(call) : call)) };
}

function toCustomCall({ id, function: { name, arguments: text } }: ToolCall): Body {
  let input: unknown;
  try {
    input = Object(parseJson(text)).input;
  } catch {
    // Written by another model, and not as it was told to.
  }
  return { id, type: 'custom', custom: { name, input: typeof input === 'string' ? input : text } };
}

/** In place. */
export function readCustomCalls({ choices }: ChatCompletion): void {
  for (const { message } of choices)
    if (message?.tool_calls)
      message.tool_calls = message.tool_calls.map((call) => {
        const { custom } = call;
        return isRecord(custom)
          ? { id: call.id, type: 'function', function: { name: String(custom.name), arguments: stringifyJson({ input: custom.input ?? '' }) } }
          : call;
      });
}

/** A stream's calls of custom tools as calls of functions: the pieces of their input become pieces of one JSON string. */
export class CustomCallReader {
  /** The call that is being written, by choice. */
  readonly #open = new Map<number, number>();

  /** In place. */
  read(chunk: ChatChunk): ChatChunk {
    for (const choice of chunk.choices ?? []) this.#readChoice(choice);
    return chunk;
  }

  #readChoice(choice: ChunkChoice): void {
    const { index, delta, finish_reason } = choice;
    const pieces = (delta?.tool_calls ?? []).flatMap((piece) => this.#readPiece(index, piece));
    if (finish_reason) pieces.push(...this.#close(index));
    if (pieces.length > 0) choice.delta = { ...delta, tool_calls: pieces };
  }

  #readPiece(choice: number, piece: ToolCallDelta): ToolCallDelta[] {
    const open = this.#open.get(choice);
    const before = open !== undefined && open !== piece.index ? this.#close(choice) : [];
    const { custom, ...rest } = piece;
    if (!isRecord(custom)) return [...before, piece];
    const input = stringifyJson(String(custom.input ?? '')).slice(1, -1);
    if (this.#open.get(choice) === piece.index) return [...before, { ...rest, function: { arguments: input } }];
    this.#open.set(choice, piece.index);
    return [...before, { ...rest, type: 'function', function: { name: String(custom.name), arguments: `{"input":"${input}` } }];
  }

  #close(choice: number): ToolCallDelta[] {
    const index = this.#open.get(choice);
    this.#open.delete(choice);
    return index === undefined ? [] : [{ index, function: { arguments: '"}' } }];
  }
}
