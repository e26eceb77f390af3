import { HermesError } from '../contracts/errors.ts';
import type { ChunkStream } from '../contracts/stream.ts';
import { batchOf, makeChunk } from './batch.ts';
import type { ChatChunk, ChatCompletion, Choice, ChunkChoice, Delta, ToolCall, ToolCallDelta, Usage } from './chat.ts';
import { replay, sizeOf } from './streams.ts';

/** Builds the whole answer out of a stream's chunks, as the official SDKs do. */
export class CompletionBuilder {
  #head: Partial<ChatCompletion> = {};
  #choices = new Map<number, Choice>();
  #usage: Usage | undefined;
  #size = 0;

  add(chunk: Readonly<ChatChunk>): void {
    // Member by member, without a copy of the rest: this runs for every event of an answer.
    for (const key in chunk) {
      const value = chunk[key];
      if (NOT_HEAD.has(key) || value === this.#head[key] || value === '' || value === null || value === 0) continue;
      this.#head[key] = value;
    }
    if (chunk.usage) this.#usage = chunk.usage;
    for (const choice of chunk.choices ?? []) this.#addChoice(choice);
  }

  /** Characters that are held, roughly. */
  get size(): number {
    return this.#size;
  }

  /** Any content at all so far? */
  get empty(): boolean {
    return this.#choices.size === 0;
  }

  build(): ChatCompletion {
    return {
      id: 'chatcmpl-hermes',
      created: 0,
      model: '',
      ...this.#head,
      object: 'chat.completion',
      choices: [...this.#choices.values()].sort((a, b) => a.index - b.index),
      ...(this.#usage ? { usage: this.#usage } : {}),
    };
  }

  #addChoice(piece: ChunkChoice): void {
    const { index, delta, finish_reason, logprobs } = piece;
    let choice = this.#choices.get(index);
    if (!choice) {
      choice = { index, message: { role: 'assistant', content: null }, logprobs: null, finish_reason: null };
      this.#choices.set(index, choice);
    }
    for (const key in piece) if (!OF_CHOICE.has(key)) choice[key] = piece[key];
    if (finish_reason) choice.finish_reason = finish_reason;
    if (logprobs) choice.logprobs = joinLogprobs(choice.logprobs, logprobs);
    if (delta) this.#size += addDelta(choice, delta);
    if (logprobs) this.#size += JSON.stringify(logprobs).length;
  }
}
const NOT_HEAD = new Set(['choices', 'usage', 'object']);
const OF_CHOICE = new Set(['index', 'delta', 'finish_reason', 'logprobs']);

/** For what must be known as a whole while it streams: a round of tools, a turn of a session. */
export function tooLarge(): HermesError {
  return new HermesError('overloaded', 'The answer is too large to be put together as a whole; ask for a shorter one.', { retryable: false });
}

/** Gives the characters that came with it, roughly. */
function addDelta(choice: Choice, delta: Delta): number {
  const { message } = choice;
  let size = 0;
  for (const key in delta) {
    const value = delta[key];
    if (value === null || value === undefined) continue;
    if (typeof value === 'string') size += value.length;
    else if (key !== 'tool_calls') size += JSON.stringify(value).length;
    if (key === 'role') message.role = delta.role ?? 'assistant';
    else if (key === 'tool_calls') for (const call of delta.tool_calls ?? []) size += addToolCall(choice, call);
    else if (typeof value === 'string') message[key] = `${typeof message[key] === 'string' ? message[key] : ''}${value}`;
    else if (Array.isArray(value)) message[key] = [...(Array.isArray(message[key]) ? message[key] : []), ...value];
    else if (key === 'function_call') message[key] = joinFunctionCall(message[key], value);
    else message[key] = value;
  }
  return size;
}

function addToolCall(choice: Choice, piece: ToolCallDelta): number {
  choice.message.tool_calls ??= [];
  const calls = choice.message.tool_calls;
  let call = calls[piece.index];
  if (!call) {
    call = { id: '', type: 'function', function: { name: '', arguments: '' } };
    calls[piece.index] = call;
  }
  const { index: _index, id, type, function: part, custom, ...rest } = piece;
  Object.assign(call, rest);
  if (id) call.id ||= id;
  if (type) call.type = type;
  if (part?.name) call.function.name ||= part.name;
  if (part?.arguments) call.function.arguments += part.arguments;
  if (custom) addCustom(call, custom);
  return (part?.arguments ?? custom?.input)?.length ?? 0;
}

/** A call of a custom tool has its input in the place of a function's arguments. */
function addCustom(call: ToolCall, piece: NonNullable<ToolCallDelta['custom']>): void {
  const before = (call.custom ?? {}) as NonNullable<ToolCallDelta['custom']>;
  call.custom = { name: before.name || piece.name || '', input: `${before.input ?? ''}${piece.input ?? ''}` };
  Reflect.deleteProperty(call, 'function');
}

function joinFunctionCall(before: unknown, piece: unknown): unknown {
  const one = (before ?? {}) as { name?: string; arguments?: string };
  const two = piece as { name?: string; arguments?: string };
  return { name: one.name ?? two.name ?? '', arguments: `${one.arguments ?? ''}${two.arguments ?? ''}` };
}

function joinLogprobs(before: unknown, piece: unknown): unknown {
  if (before === null || typeof before !== 'object' || piece === null || typeof piece !== 'object') return piece;
  const joined: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(piece)) joined[key] = Array.isArray(joined[key]) && Array.isArray(value) ? [...joined[key], ...value] : value;
  return joined;
}

/** Reads a stream to its end; gives the whole answer. Rejects with the stream's error. */
export async function collect(stream: ChunkStream, maxBytes: number = Number.POSITIVE_INFINITY): Promise<ChatCompletion> {
  const builder = new CompletionBuilder();
  let bytes = 0;
  for (;;) {
    const batch = await stream.read();
    if (batch === null) return compact(builder.build());
    bytes += sizeOf(batch);
    if (bytes > maxBytes) {
      const error = new HermesError('overloaded', 'The answer is too large to be put together as a whole; ask for a stream.');
      await stream.cancel(error);
      throw error;
    }
    for (const chunk of batch.chunks) builder.add(chunk.view);
  }
}

/** Tool calls whose indexes had gaps stand side by side. */
function compact(completion: ChatCompletion): ChatCompletion {
  for (const { message } of completion.choices) if (message.tool_calls) message.tool_calls = message.tool_calls.filter(Boolean);
  return completion;
}

/** A whole answer as the stream that would have brought it: role, content, tool calls, finish, usage. */
export function spread(completion: ChatCompletion): ChunkStream {
  const { choices, usage, object: _object, ...head } = completion;
  const chunk = (list: ChunkChoice[], more: Partial<ChatChunk> = {}): ChatChunk => ({ ...head, object: 'chat.completion.chunk', choices: list, ...more });
  const chunks: ChatChunk[] = [];
  for (const { index, message, finish_reason, logprobs } of choices) {
    const { role, content, tool_calls, ...rest } = message;
    const said = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== undefined));
    chunks.push(chunk([{ index, delta: { role, content: content === null && tool_calls ? null : '' }, logprobs: null, finish_reason: null }]));
    if (Object.keys(said).length > 0) chunks.push(chunk([{ index, delta: said, logprobs: null, finish_reason: null }]));
    if (typeof content === 'string' && content !== '') chunks.push(chunk([{ index, delta: { content }, logprobs: logprobs ?? null, finish_reason: null }]));
    if (tool_calls?.length)
      chunks.push(
        chunk([{ index, delta: { tool_calls: tool_calls.map((call, position) => ({ index: position, ...call })) }, logprobs: null, finish_reason: null }]),
      );
    chunks.push(chunk([{ index, delta: {}, logprobs: null, finish_reason: finish_reason ?? 'stop' }]));
  }
  if (usage) chunks.push(chunk([], { usage }));
  return replay([batchOf(chunks.map(makeChunk))]);
}
