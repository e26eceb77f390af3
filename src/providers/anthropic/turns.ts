import { HermesError } from '../../contracts/errors.ts';
import type { ChatMessage, ToolCall } from '../../wire/chat.ts';
import { isRecord, parseJson } from '../../wire/json.ts';
import type { NameMap } from '../../wire/tool-names.ts';
import type { Block, Turn } from './blocks.ts';
import { toBlocks } from './content.ts';
import { ToolIds } from './tool-ids.ts';

export interface Conversation {
  /** Text blocks of the system and developer messages, in order, wherever they stood. */
  system: Block[];
  /** Alternating, the user's first; every tool call is answered at the head of the next turn. */
  turns: Turn[];
  dropped: string[];
}
export interface ConversationOptions {
  names: NameMap;
  /** Does this message's signed thinking go along? Only its maker takes it. */
  sendsThinking(message: ChatMessage): boolean;
}

/** Said for a turn that must be there and has nothing to say: the API refuses empty and blank ones. */
const NOTHING = '(no content)';
const ASSISTANT_FIRST = '(The assistant begins.)';
const GO_ON = 'Continue.';
const NO_RESULT = 'No result is known for this call.';

export function toConversation(messages: readonly ChatMessage[], options: ConversationOptions): Conversation {
  const builder = new ConversationBuilder(messages, options);
  for (const [index, message] of messages.entries()) builder.add(message, index);
  return builder.build();
}

interface OpenCall {
  id: string;
  wireId: string;
  result: Block | undefined;
}

class ConversationBuilder {
  readonly #options: ConversationOptions;
  readonly #ids: ToolIds;
  readonly #system: Block[] = [];
  readonly #turns: Turn[] = [];
  readonly #dropped = new Set<string>();
  /** The calls of the last assistant turn, in order. */
  #open: OpenCall[] = [];
  /** Where the results go: the user turn after that one. */
  #answering: Turn | undefined;

  constructor(messages: readonly ChatMessage[], options: ConversationOptions) {
    this.#options = options;
    this.#ids = new ToolIds(messages.flatMap((message) => message.tool_calls?.map((call) => call.id) ?? []));
  }

  add(message: ChatMessage, index: number): void {
    const path = `messages[${index}]`;
    if (typeof message.name === 'string' && message.role !== 'tool' && message.role !== 'function') this.#dropped.add('messages.name');
    switch (message.role) {
      case 'system':
      case 'developer':
        this.#system.push(...toBlocks(message.content, `${path}.content`).filter((block) => block.type === 'text'));
        break;
      case 'assistant':
        this.#addAssistant(message, path);
        break;
      case 'tool':
        this.#addResult(message, message.tool_call_id ?? '', path);
        break;
      case 'function':
        this.#addResult(message, functionCallId(message.name), path);
        break;
      default:
        this.#addUser(message, path);
    }
  }

  build(): Conversation {
    this.#settle();
    for (const turn of this.#turns) if (turn.content.length === 0) turn.content.push({ type: 'text', text: NOTHING });
    if (this.#turns[0]?.role !== 'user')
      this.#turns.unshift({ role: 'user', content: [{ type: 'text', text: this.#turns.length > 0 ? ASSISTANT_FIRST : NOTHING }] });
    return { system: this.#system, turns: this.#turns, dropped: [...this.#dropped] };
  }

  #addUser(message: ChatMessage, path: string): void {
    const blocks = toBlocks(message.content, `${path}.content`);
    if (blocks.length > 0) this.#turn('user').content.push(...blocks);
    // A last user message without content still ends the assistant's turn.
    else if (this.#turns.at(-1)?.role === 'assistant') this.#turn('user');
  }

  #addAssistant(message: ChatMessage, path: string): void {
    const pieces = toBlocks(message.content, `${path}.content`);
    if (pieces.length === 0) pieces.push(...toBlocks(message.refusal, path));
    const calls = callsOf(message);
    const blocks = calls.map((call, index) => this.#toolUse(call, `${path}.tool_calls[${index}].function.arguments`));
    const all = this.#options.sendsThinking(message) ? withThinking([...pieces, ...blocks], message.thinking_blocks) : [...pieces, ...blocks];
    if (all.length === 0) return;
    const turn = this.#turn('assistant');
    turn.content.push(...all);
    for (const [index, call] of calls.entries()) {
      const block = blocks[index];
      if (block) this.#open.push({ id: call.id, wireId: String(block.id), result: undefined });
    }
  }

  #toolUse(call: ToolCall, path: string): Block {
    const { name, arguments: text } = call.function;
    const block: Block = { type: 'tool_use', id: this.#ids.open(call.id), name: this.#options.names.toWire(name), input: parseArguments(text, path) };
    if (isRecord(call.anthropic)) Object.assign(block, call.anthropic);
    return block;
  }

  #addResult(message: ChatMessage, id: string, path: string): void {
    const content = toBlocks(message.content, `${path}.content`);
    const call = this.#open.find((open) => open.id === id && !open.result);
    if (!call) {
      // A result whose call is gone (or was answered already) would be refused as a result: it stays as what it says.
      if (content.length > 0) this.#turn('user').content.push(...content);
      return;
    }
    const single = content.length === 1 && content[0]?.type === 'text' && !('cache_control' in content[0]) ? content[0].text : content;
    const block: Block = { type: 'tool_result', tool_use_id: call.wireId, ...(content.length > 0 ? { content: single } : {}) };
    if (isRecord(message.anthropic)) Object.assign(block, message.anthropic);
    call.result = block;
    this.#answering ??= this.#turn('user');
  }

  /** The turn to add to: the last one when it is of this role. Another assistant turn settles what the one before asked for. */
  #turn(role: Turn['role']): Turn {
    const last = this.#turns.at(-1);
    if (last?.role === role) return last;
    if (role === 'assistant') this.#settle();
    const turn: Turn = { role, content: [] };
    this.#turns.push(turn);
    if (role === 'user' && this.#open.length > 0) this.#answering = turn;
    return turn;
  }

  /** Puts every result, and a word for each that is missing, at the head of the turn that follows the calls. */
  #settle(): void {
    if (this.#open.length > 0) {
      this.#answering ??= this.#turn('user');
      const results = this.#open.map((call): Block => call.result ?? { type: 'tool_result', tool_use_id: call.wireId, content: NO_RESULT, is_error: true });
      this.#answering.content.unshift(...results);
    }
    this.#open = [];
    this.#answering = undefined;
  }
}

/** Has the assistant the last word, the model goes on from there (`prefill`), where it may; else it is told to. Changes `turns`. */
export function mendEnd(turns: Turn[], prefill: boolean): void {
  const last = turns.at(-1);
  if (last?.role !== 'assistant') return;
  const text = last.content.at(-1);
  if (prefill && text?.type === 'text') text.text = String(text.text).trimEnd();
  else turns.push({ role: 'user', content: [{ type: 'text', text: GO_ON }] });
}

/**
 * With thinking on, an assistant turn whose calls have just been answered must begin with its thinking. A caller that lost
 * it (other makers' calls, a client that keeps only what it knows) would get a 400: then the loop goes on without.
 */
export function lostThinking(turns: readonly Turn[]): boolean {
  const last = turns.findLast((turn) => turn.role === 'assistant');
  return last?.content.some((block) => block.type === 'tool_use') === true && !/thinking$/.test(last.content[0]?.type ?? '');
}

/** The tool calls of a message; the legacy `function_call` is one. */
function callsOf(message: ChatMessage): ToolCall[] {
  const calls = (message.tool_calls ?? []).filter((call) => call.function);
  const legacy = message.function_call;
  if (isRecord(legacy) && typeof legacy.name === 'string')
    calls.push({ id: functionCallId(legacy.name), type: 'function', function: { name: legacy.name, arguments: String(legacy.arguments ?? '') } });
  return calls;
}

/** The legacy form has no ids: a result names its function. */
function functionCallId(name: unknown): string {
  return `function_${String(name)}`;
}

/** Digits beyond 2^53 are kept (see wire/json). Throws for what is no JSON object: guessing would call a tool with other arguments. */
function parseArguments(text: unknown, path: string): Record<string, unknown> {
  if (typeof text !== 'string' || text.trim() === '') return {};
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw new HermesError('invalid_value', `'${path}' is not valid JSON; send the arguments as the model wrote them, or leave the call out.`, {
      param: path,
      cause,
    });
  }
  if (value === null) return {};
  if (!isRecord(value)) throw new HermesError('invalid_value', `'${path}' must be a JSON object.`, { param: path });
  return value;
}

/** Thinking goes back first and byte for byte; `position` (ours) says how many other blocks came before one that did not. */
function withThinking(pieces: Block[], thinking: unknown): Block[] {
  if (!Array.isArray(thinking)) return pieces;
  const slots: Block[][] = Array.from({ length: pieces.length + 1 }, () => []);
  for (const entry of thinking) {
    const block = thinkingBlock(entry);
    if (!block) continue;
    const position = isRecord(entry) && typeof entry.position === 'number' ? entry.position : 0;
    slots[Math.min(Math.max(0, position), pieces.length)]?.push(block);
  }
  return slots.flatMap((before, index) => [...before, ...pieces.slice(index, index + 1)]);
}

function thinkingBlock(entry: unknown): Block | undefined {
  if (!isRecord(entry)) return undefined;
  if (entry.type === 'thinking' && typeof entry.thinking === 'string' && typeof entry.signature === 'string' && entry.signature !== '')
    return { type: 'thinking', thinking: entry.thinking, signature: entry.signature };
  if (entry.type === 'redacted_thinking' && typeof entry.data === 'string') return { type: 'redacted_thinking', data: entry.data };
  return undefined;
}
