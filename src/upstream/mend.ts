import type { ChatChunk, ChatCompletion, ChunkChoice, FinishReason, ToolCallDelta } from '../wire/chat.ts';
import { type CallMark, CallPlaces } from './call-places.ts';

/**
 * The finish reason as clients may rely on it: tool calls are announced by `tool_calls` whatever the upstream calls it
 * (`stop`, nothing), and an empty list of calls ends the turn.
 */
function toFinishReason(said: FinishReason | null | undefined, calls: boolean): FinishReason {
  if (calls && (!said || said === 'stop')) return 'tool_calls';
  if (!calls && (!said || said === 'tool_calls')) return 'stop';
  return said ?? 'stop';
}

/** In place. A tool without parameters is called with `""` or nothing by some: `{}` is what clients can parse. Tells whether anything changed. */
export function mendCompletion(completion: ChatCompletion): boolean {
  let changed = false;
  for (const choice of completion.choices) {
    const calls = choice.message?.tool_calls;
    for (const call of calls ?? []) {
      if (call.function && !call.function.arguments) {
        call.function.arguments = '{}';
        changed = true;
      }
    }
    const reason = toFinishReason(choice.finish_reason, (calls?.length ?? 0) > 0);
    if (reason !== choice.finish_reason) {
      choice.finish_reason = reason;
      changed = true;
    }
  }
  return changed;
}

/** Is there anything in it that a caller asked for? Silence with a reason (`length`, `content_filter`) is an answer, and so is an empty text. */
export function isAnswer(completion: ChatCompletion): boolean {
  return completion.choices.some(({ message, finish_reason }) => {
    if (!message) return false;
    if (typeof message.content === 'string' || (Array.isArray(message.content) && message.content.length > 0)) return true;
    // An empty list of calls is said, too: it ends the turn.
    if (Array.isArray(message.tool_calls) || message.function_call || message.refusal || message.audio || message.reasoning_content) return true;
    return finish_reason === 'length' || finish_reason === 'content_filter';
  });
}

/** One choice's tool calls while they stream, and how it ended. */
class ChoiceState {
  finish: FinishReason | undefined;
  readonly calls = new CallPlaces();
}

/** How far a stream was noted. */
export type StatesMark = ReadonlyMap<number, CallMark>;

/** What is known of a stream's choices: enough to mend its end. Chunks that are noted once more must be rewound to before them. */
export class ChoiceStates {
  readonly #choices = new Map<number, ChoiceState>();
  /** Roles, and names of calls, that the client has been given: accumulators join what comes twice (`assistantassistant`). */
  readonly #given = new Set<string>();
  /** Of the pieces that were noted. */
  readonly #places = new WeakMap<ToolCallDelta, number>();
  /** Id, created and model of the first chunk that had them. */
  #head: Pick<ChatChunk, 'id' | 'created' | 'model'> | undefined;

  note(chunk: Readonly<ChatChunk>): void {
    if (!this.#head?.id) this.#head = { id: chunk.id, created: chunk.created, model: chunk.model };
    for (const choice of chunk.choices ?? []) this.#noteChoice(choice);
  }

  get size(): number {
    return this.#choices.size;
  }
  /** Every choice that has been seen, of at least `expected`, has its finish reason. */
  finished(expected: number): boolean {
    if (this.#choices.size < expected) return false;
    for (const choice of this.#choices.values()) if (choice.finish === undefined) return false;
    return true;
  }
  get anyFinished(): boolean {
    for (const choice of this.#choices.values()) if (choice.finish !== undefined) return true;
    return false;
  }
  get firstFinish(): FinishReason | undefined {
    for (const choice of this.#choices.values()) if (choice.finish !== undefined) return choice.finish;
    return undefined;
  }

  /** Must this chunk be written anew? */
  needsMending(chunk: Readonly<ChatChunk>): boolean {
    return (chunk.choices ?? []).some(({ index, delta, finish_reason }) => {
      if (delta?.role && this.#given.has(roleKey(index))) return true;
      const changes = (call: ToolCallDelta): boolean =>
        this.#placeOf(call) !== call.index || (isNamed(call) && this.#given.has(callKey(index, this.#placeOf(call))));
      if (delta?.tool_calls?.some(changes)) return true;
      if (!finish_reason) return false;
      const calls = this.#choices.get(index)?.calls;
      return toFinishReason(finish_reason, (calls?.size ?? 0) > 0) !== finish_reason || (calls !== undefined && !calls.allCame);
    });
  }

  /** This chunk goes to the client. Gives what is new to it, for the case that it does not after all. */
  give(chunk: Readonly<ChatChunk>): string[] {
    const fresh: string[] = [];
    const add = (key: string): void => {
      if (!this.#given.has(key)) fresh.push(key);
      this.#given.add(key);
    };
    for (const { index, delta } of chunk.choices ?? []) {
      if (delta?.role) add(roleKey(index));
      for (const call of delta?.tool_calls ?? []) if (isNamed(call)) add(callKey(index, this.#placeOf(call)));
    }
    return fresh;
  }
  takeBack(keys: readonly string[]): void {
    for (const key of keys) this.#given.delete(key);
  }

  /** Before chunks that may be noted once more. */
  mark(): StatesMark {
    const mark = new Map<number, CallMark>();
    for (const [index, { calls }] of this.#choices) if (calls.size > 0) mark.set(index, calls.mark());
    return mark;
  }
  rewind(mark: StatesMark): void {
    for (const [index, { calls }] of this.#choices) if (calls.size > 0) calls.rewind(mark.get(index));
  }

  /** The chunk with its finish reasons put right, calls counted from 0, and without what has been said before. */
  mend(chunk: Readonly<ChatChunk>): ChatChunk {
    const choices = (chunk.choices ?? []).map((original) => {
      const choice = this.#mendDelta(original);
      if (!choice.finish_reason) return choice;
      return { ...choice, finish_reason: toFinishReason(choice.finish_reason, (this.#choices.get(choice.index)?.calls.size ?? 0) > 0) };
    });
    return { ...chunk, choices };
  }

  /** A chunk that gives `{}` to the calls of this choice whose arguments never came. */
  missingArguments(index: number): ChatChunk | undefined {
    const bare = (this.#choices.get(index)?.calls.takeBare() ?? []).map((place) => ({ index: place, function: { arguments: '{}' } }));
    return bare.length > 0 ? this.#make([{ index, delta: { tool_calls: bare }, finish_reason: null }]) : undefined;
  }

  /** The finish reasons that never came, of a stream whose terminal marker says that it is whole. */
  missingFinish(): ChatChunk | undefined {
    const open = [...this.#choices].filter(([, choice]) => choice.finish === undefined);
    for (const [, choice] of open) choice.finish = toFinishReason(undefined, choice.calls.size > 0);
    return open.length > 0 ? this.#make(open.map(([index, choice]) => ({ index, delta: {}, finish_reason: choice.finish ?? 'stop' }))) : undefined;
  }
  get openChoices(): number[] {
    return [...this.#choices].filter(([, choice]) => choice.finish === undefined).map(([index]) => index);
  }

  #mendDelta(choice: ChunkChoice): ChunkChoice {
    const { index, delta } = choice;
    if (!delta) return choice;
    const { role, tool_calls, ...rest } = delta;
    const calls = tool_calls?.map((original): ToolCallDelta => {
      const { id, type, ...call } = original;
      const place = this.#placeOf(original);
      const said = this.#given.has(callKey(index, place));
      const { name, ...called } = call.function ?? {};
      return {
        ...call,
        index: place,
        ...(said ? { function: called } : { ...(id ? { id } : {}), ...(type ? { type } : {}), function: { ...(name ? { name } : {}), ...called } }),
      };
    });
    return { ...choice, delta: { ...(role && !this.#given.has(roleKey(index)) ? { role } : {}), ...rest, ...(calls ? { tool_calls: calls } : {}) } };
  }

  #placeOf(call: ToolCallDelta): number {
    return this.#places.get(call) ?? call.index;
  }

  #noteChoice({ index, delta, finish_reason }: ChunkChoice): void {
    let state = this.#choices.get(index);
    if (!state) {
      state = new ChoiceState();
      this.#choices.set(index, state);
    }
    for (const call of delta?.tool_calls ?? []) this.#places.set(call, state.calls.note(call));
    if (finish_reason) state.finish = finish_reason;
  }

  #make(choices: ChunkChoice[]): ChatChunk {
    return { id: '', created: 0, model: '', ...this.#head, object: 'chat.completion.chunk', choices };
  }
}

function roleKey(choice: number): string {
  return `role ${choice}`;
}
function callKey(choice: number, call: number): string {
  return `call ${choice} ${call}`;
}
function isNamed({ id, function: called }: ToolCallDelta): boolean {
  return Boolean(id || called?.name);
}
