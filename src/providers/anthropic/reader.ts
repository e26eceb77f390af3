import type { Reader } from '../../contracts/stream.ts';
import type { ChatChunk, Delta, ToolCallDelta } from '../../wire/chat.ts';
import { isRecord, parseJson, stringifyJson } from '../../wire/json.ts';
import { setSignedThinking } from '../../wire/signed-thinking.ts';
import { readEvent } from '../../wire/sse.ts';
import { setUpstreamFinish } from '../../wire/upstream-finish.ts';
import { type AnswerContext, keepThinking, refusalText } from './answer.ts';
import { toStreamError } from './failure.ts';
import { type Counters, latest, mapFinish, toServiceTier, toUsage } from './usage.ts';

type Event = Record<string, unknown>;

/** The block that is being written. */
interface OpenBlock {
  type: string;
  /** Tool calls are counted from 0, whatever Anthropic's own index says. */
  call: number;
  /** Input that came whole with the block's start, as JSON text; sent when no fragment follows. */
  input: string;
  fragments: boolean;
  thinking: Record<string, unknown>;
  position: number;
}

/**
 * Anthropic's named events to canonical chunks. Usage rides on the finish chunk: Anthropic's counters are cumulative, and
 * only the last ones are told. So do the signed thinking blocks: the SDKs' accumulators overwrite (Node) or refuse (Python)
 * an unknown list that comes more than once.
 */
export class AnthropicReader implements Reader {
  readonly #context: AnswerContext;
  #head = { id: '', model: '' };
  #counters: Counters = {};
  /** By Anthropic's index: blocks may interleave. */
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #thinking: Record<string, unknown>[] = [];
  /** How many of these have been handed to the chunk after them. */
  #signed = 0;
  #calls = 0;
  #texted = false;
  #finished = false;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  read(bytes: Uint8Array): ChatChunk | null | 'end' {
    const { event, data } = readEvent(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (data === undefined || data === '' || data === '[DONE]') return data === '[DONE]' ? 'end' : null;
    const parsed = parseJson(data);
    if (!isRecord(parsed)) return null;
    switch (parsed.type ?? event) {
      case 'message_start':
        return this.#start(parsed);
      case 'content_block_start':
        return this.#startBlock(parsed);
      case 'content_block_delta':
        return this.#addDelta(parsed);
      case 'content_block_stop':
        return this.#stopBlock(parsed);
      case 'message_delta':
        return this.#finish(parsed);
      case 'message_stop':
        return 'end';
      case 'error':
        throw toStreamError(data);
      default:
        if (isRecord(parsed.error)) throw toStreamError(data);
        return null;
    }
  }

  #start(event: Event): ChatChunk {
    const message = isRecord(event.message) ? event.message : {};
    this.#head = { id: typeof message.id === 'string' ? message.id : 'msg_unknown', model: typeof message.model === 'string' ? message.model : '' };
    this.#counters = latest({}, message.usage);
    return this.#chunk({ role: 'assistant', content: '' });
  }

  #startBlock(event: Event): ChatChunk | null {
    const block = isRecord(event.content_block) ? event.content_block : {};
    const position = (this.#texted ? 1 : 0) + this.#calls;
    const open: OpenBlock = { type: String(block.type), call: 0, input: '', fragments: false, thinking: { ...block }, position };
    this.#blocks.set(indexOf(event), open);
    if (open.type === 'tool_use') {
      open.call = this.#calls++;
      open.input = isRecord(block.input) && Object.keys(block.input).length > 0 ? stringifyJson(block.input) : '{}';
      const name = this.#context.names.fromWire(String(block.name));
      return this.#chunk(this.#call({ index: open.call, id: String(block.id), type: 'function', function: { name, arguments: '' } }));
    }
    if (open.type === 'redacted_thinking') this.#thinking.push(keepThinking(block, position));
    if (open.type === 'text' && typeof block.text === 'string' && block.text !== '') return this.#text(block.text);
    if (open.type === 'thinking' && typeof block.thinking === 'string' && block.thinking !== '') return this.#chunk({ reasoning_content: block.thinking });
    return null;
  }

  #addDelta(event: Event): ChatChunk | null {
    const delta = isRecord(event.delta) ? event.delta : {};
    const open = this.#blocks.get(indexOf(event));
    switch (delta.type) {
      case 'text_delta':
        return typeof delta.text === 'string' && delta.text !== '' ? this.#text(delta.text) : null;
      case 'input_json_delta':
        return open?.type === 'tool_use' && typeof delta.partial_json === 'string' && delta.partial_json !== ''
          ? this.#addInput(open, delta.partial_json)
          : null;
      case 'thinking_delta':
        if (typeof delta.thinking !== 'string' || delta.thinking === '') return null;
        if (open) open.thinking.thinking = `${open.thinking.thinking ?? ''}${delta.thinking}`;
        return this.#chunk({ reasoning_content: delta.thinking });
      case 'signature_delta':
        if (open && typeof delta.signature === 'string') open.thinking.signature = `${open.thinking.signature ?? ''}${delta.signature}`;
        return null;
      default:
        return null;
    }
  }

  #text(text: string): ChatChunk {
    this.#texted = true;
    return this.#chunk({ content: text });
  }

  #addInput(open: OpenBlock, fragment: string): ChatChunk {
    open.fragments = true;
    return this.#chunk(this.#call({ index: open.call, function: { arguments: fragment } }));
  }

  #stopBlock(event: Event): ChatChunk | null {
    const open = this.#blocks.get(indexOf(event));
    this.#blocks.delete(indexOf(event));
    if (open?.type === 'tool_use' && !open.fragments) return this.#chunk(this.#call({ index: open.call, function: { arguments: open.input } }));
    if (open?.type === 'thinking' && open.thinking.signature) this.#thinking.push(keepThinking(open.thinking, open.position));
    return null;
  }

  #finish(event: Event): ChatChunk | null {
    this.#counters = latest(this.#counters, event.usage);
    const delta = isRecord(event.delta) ? event.delta : {};
    const reason = typeof delta.stop_reason === 'string' ? delta.stop_reason : undefined;
    const usage = toUsage(this.#counters);
    const more = { ...(usage ? { usage } : {}), ...toServiceTier(this.#counters) };
    if (this.#finished) return usage ? { ...this.#chunk({}), choices: [], ...more } : null;
    if (reason === undefined) return null;
    this.#finished = true;
    const explanation = reason === 'refusal' ? refusalText(delta.stop_details) : undefined;
    const thinking = this.#thinking.length > 0 ? { thinking_blocks: this.#thinking } : {};
    const chunk = Object.assign(this.#chunk({ ...this.#unsaidInput(), ...thinking, ...(explanation ? { refusal: explanation } : {}) }), more);
    const choice = chunk.choices[0];
    const finish = mapFinish(reason, this.#calls > 0);
    if (choice) choice.finish_reason = finish === 'tool_calls' && this.#context.legacy ? 'function_call' : finish;
    setUpstreamFinish(chunk, reason);
    return chunk;
  }

  /** Arguments of a call whose block was never closed and brought no fragment. */
  #unsaidInput(): Delta {
    const unsaid = [...this.#blocks.values()].filter((open) => open.type === 'tool_use' && !open.fragments);
    const calls = unsaid.map((open) => ({ index: open.call, function: { arguments: open.input } }));
    if (calls.length === 0) return {};
    return this.#context.legacy && calls[0] ? this.#call(calls[0]) : { tool_calls: calls };
  }

  #call(call: ToolCallDelta): Delta {
    return this.#context.legacy ? { function_call: call.function } : { tool_calls: [call] };
  }

  #chunk(delta: Delta): ChatChunk {
    const chunk: ChatChunk = {
      id: this.#head.id,
      object: 'chat.completion.chunk',
      created: 0,
      model: this.#head.model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
    };
    if (this.#signed < this.#thinking.length) {
      setSignedThinking(chunk, this.#thinking.slice(this.#signed));
      this.#signed = this.#thinking.length;
    }
    return chunk;
  }
}

function indexOf(event: Event): number {
  return typeof event.index === 'number' ? event.index : 0;
}
