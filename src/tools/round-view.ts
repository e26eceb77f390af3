import type { Batch, Chunk } from '../contracts/stream.ts';
import { batchOf, makeChunk } from '../wire/batch.ts';
import type { ChatChunk, ChatMessage, ChunkChoice, Delta, ToolCallDelta, Usage } from '../wire/chat.ts';
import { CompletionBuilder } from '../wire/collect.ts';
import { toLawfulArguments } from './lawful.ts';

/** What all rounds of one client's stream share. */
export interface ClientStream {
  /** The first event: later rounds go under its id. */
  head: ChatChunk | undefined;
  /** The role was sent: once is enough, SDKs join what comes twice. */
  begun: boolean;
  /** Client-side calls so far: their indexes count from 0. */
  calls: number;
}
export function createClientStream(): ClientStream {
  return { head: undefined, begun: false, calls: 0 };
}

interface CallState {
  client: boolean | undefined;
  as: number;
  /** Pieces that came before the name. */
  held: ToolCallDelta[];
  empty: boolean;
}

/**
 * One round as the client sees it: server-side calls, the finish and usage taken out, client-side calls counted anew. A
 * batch with nothing of that in it passes as it came.
 */
export class RoundView {
  readonly #client: ClientStream;
  readonly #isClients: (name: string) => boolean;
  readonly #first: boolean;
  readonly #builder = new CompletionBuilder();
  readonly #calls = new Map<number, CallState>();
  finish: ChatChunk | undefined;
  usage: Usage | undefined;

  constructor(client: ClientStream, isClients: (name: string) => boolean) {
    this.#client = client;
    this.#isClients = isClients;
    this.#first = !client.begun;
  }

  pass(batch: Batch): Batch | undefined {
    const out: Chunk[] = [];
    let touched = false;
    for (const chunk of batch.chunks) {
      this.#builder.add(chunk.view);
      const kept = this.#filter(chunk);
      touched ||= kept !== chunk;
      if (kept) out.push(kept);
    }
    if (out.length === 0) return undefined;
    this.#client.begun = true;
    if (!touched && batch.form === 'openai-chat') return batch;
    return batchOf(out.map((chunk) => (chunk.form === 'openai-chat' ? chunk : makeChunk(chunk.view))));
  }

  /** Characters that are held of it. */
  get size(): number {
    return this.#builder.size;
  }

  /** The model's message; undefined when nothing came. */
  message(): ChatMessage | undefined {
    const message = this.#builder.build().choices.find(({ index }) => index === 0)?.message;
    if (message?.tool_calls) message.tool_calls = message.tool_calls.filter(Boolean);
    return message;
  }

  /** Client-side calls that came without a name or without arguments, completed. */
  rest(): ToolCallDelta[] {
    return [...this.#calls.values()]
      .filter(({ client, empty }) => client && empty)
      .map(({ as }) => ({ index: as, function: { arguments: toLawfulArguments('') } }));
  }

  #filter(chunk: Chunk): Chunk | undefined {
    const { view } = chunk;
    this.#client.head ??= view;
    const choice = view.choices?.[0];
    const delta = choice?.delta;
    if (view.usage) this.usage = view.usage;
    if (choice?.finish_reason) this.finish = view;
    const plain = !view.usage && !choice?.finish_reason && !delta?.tool_calls && !delta?.thinking_blocks;
    if (plain && this.#first) return chunk;
    return this.#rewritten(view, choice, delta);
  }

  #rewritten(view: Readonly<ChatChunk>, choice: ChunkChoice | undefined, delta: Delta | undefined): Chunk | undefined {
    const { usage: _usage, choices: _choices, ...head } = view;
    // Signed thinking is told once, with the answer's own finish: SDKs do not join a list that comes twice.
    const { role, tool_calls, thinking_blocks: _signed, ...said } = delta ?? {};
    const calls = tool_calls ? this.#toClients(tool_calls) : [];
    const shown: Delta = { ...(role && this.#first ? { role } : {}), ...said, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
    const empty = !(role && this.#first) && calls.length === 0 && Object.values(said).every((value) => value === null || value === undefined || value === '');
    if (choice === undefined || empty) return undefined;
    const { id, created } = this.#client.head ?? view;
    return makeChunk({ ...head, id, created, choices: [{ ...choice, delta: shown, finish_reason: null }] });
  }

  #toClients(pieces: readonly ToolCallDelta[]): ToolCallDelta[] {
    return pieces.flatMap((piece) => {
      const call = this.#call(piece.index);
      const name = piece.function?.name;
      if (call.client === undefined && name) {
        call.client = this.#isClients(name);
        if (call.client) call.as = this.#client.calls++;
      }
      if (piece.function?.arguments?.trim()) call.empty = false;
      if (call.client === undefined) call.held.push(piece);
      if (!call.client) return [];
      return [...call.held.splice(0), piece].map((held) => ({ ...held, index: call.as }));
    });
  }

  #call(index: number): CallState {
    let call = this.#calls.get(index);
    if (call === undefined) {
      call = { client: undefined, as: 0, held: [], empty: true };
      this.#calls.set(index, call);
    }
    return call;
  }
}
