import { HermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit } from '../contracts/exchange.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import { batchOf, makeChunk } from '../wire/batch.ts';
import type { ChatChunk, ChatCompletion, ChunkChoice, Usage } from '../wire/chat.ts';
import { spread, tooLarge } from '../wire/collect.ts';
import { generate } from '../wire/streams.ts';
import { addFacts, addUsage } from './facts.ts';
import { toFinishReason } from './lawful.ts';
import { type ClientStream, createClientStream, RoundView } from './round-view.ts';
import type { Taken, ToolTurn } from './turn.ts';

/** Asks the model for the next round. */
export interface Ask {
  model(): Promise<Answer>;
  cancel(reason: HermesError): void;
}

/** All rounds of a request as one stream: the first round's head, one role, one finish. A round is known as a whole at its end, and is bounded. */
export function runStreamedRounds(turn: ToolTurn, first: Answer, ask: Ask, maxSize: number): AnswerInit {
  const { status, headers, holdFinish, facts } = first;
  const rounds = new Rounds(turn, first, ask, maxSize);
  const inner = generate(() => rounds.run());
  const stream: ChunkStream = {
    read: () => inner.read(),
    // The generator may be waiting for the round's own stream: that one has to end first.
    cancel: async (reason) => {
      await rounds.cancel(reason ?? new HermesError('client_closed', 'The client closed the connection.'));
      await inner.cancel(reason);
    },
  };
  return { status, headers, holdFinish, facts, stream };
}

class Rounds {
  readonly #turn: ToolTurn;
  readonly #first: Answer;
  readonly #ask: Ask;
  readonly #maxSize: number;
  readonly #client: ClientStream = createClientStream();
  #current: ChunkStream | undefined;
  #cancelled: HermesError | undefined;

  constructor(turn: ToolTurn, first: Answer, ask: Ask, maxSize: number) {
    this.#turn = turn;
    this.#first = first;
    this.#ask = ask;
    this.#maxSize = maxSize;
  }

  async cancel(reason: HermesError): Promise<void> {
    this.#cancelled = reason;
    this.#ask.cancel(reason);
    await (this.#current ?? this.#first.stream)?.cancel(reason);
  }

  async *run(): AsyncGenerator<Batch, void, undefined> {
    const { facts } = this.#first;
    facts.toolCalls = this.#turn.facts;
    // Texts of rounds that an earlier try went through: the client sees the whole answer.
    for (const text of this.#turn.said) yield this.#text(text);
    let usage: Usage | undefined;
    for (let answer = this.#first; ; answer = await this.#ask.model()) {
      if (this.#cancelled) {
        await answer.stream?.cancel(this.#cancelled);
        throw this.#cancelled;
      }
      if (answer.error) {
        addFacts(facts, answer.facts);
        throw answer.error;
      }
      const view = new RoundView(this.#client, (name) => this.#turn.isClients(name));
      const stream = answer.stream ?? spread(answer.view as ChatCompletion);
      this.#current = stream;
      for (let batch = await stream.read(); batch !== null; batch = await stream.read()) {
        const shown = view.pass(batch);
        if (shown) yield shown;
        if (view.size > this.#maxSize) {
          const error = tooLarge();
          await stream.cancel(error);
          throw error;
        }
      }
      // What is known of a stream is known at its end.
      if (answer !== this.#first) addFacts(facts, answer.facts);
      usage = addUsage(usage, view.usage);
      const message = view.message();
      const taken: Taken = message ? await this.#turn.take(message, answer.facts.maker) : { over: true, message: { role: 'assistant' }, calls: [] };
      facts.waitedMs = (facts.waitedMs ?? 0) + this.#turn.takeWaited();
      if (!taken.over) continue;
      if (taken.note !== undefined) yield this.#text(taken.note);
      yield* this.#ending(view, taken, usage);
      return;
    }
  }

  *#ending(view: RoundView, { calls }: Taken & { over: true }, usage: Usage | undefined): Generator<Batch> {
    const { facts } = this.#first;
    const choice = view.finish?.choices[0];
    const rest = view.rest();
    const finish_reason = toFinishReason(choice?.finish_reason, calls.length);
    const thinking_blocks = view.message()?.thinking_blocks;
    const last: ChunkChoice[] = [{ index: 0, delta: thinking_blocks ? { thinking_blocks } : {}, finish_reason }];
    const more = rest.length > 0 ? [this.#chunk([{ index: 0, delta: { tool_calls: rest }, finish_reason: null }])] : [];
    facts.finishReason = finish_reason;
    if (usage) facts.usage = usage;
    const ending = [...more, this.#chunk(last, view.finish), ...(usage ? [{ ...this.#chunk([]), usage }] : [])];
    yield batchOf(ending.map(makeChunk));
  }

  #text(text: string): Batch {
    const first = !this.#client.begun;
    this.#client.begun = true;
    return batchOf([makeChunk(this.#chunk([{ index: 0, delta: { ...(first ? { role: 'assistant' } : {}), content: text }, finish_reason: null }]))]);
  }

  /** An event of ours, like those that came. */
  #chunk(choices: ChunkChoice[], like: ChatChunk | undefined = this.#client.head): ChatChunk {
    const {
      usage: _usage,
      choices: _choices,
      ...head
    } = like ?? { id: `chatcmpl-${this.#turn.id}`, object: 'chat.completion.chunk', created: 0, model: this.#first.facts.model ?? '', choices: [] };
    const { id, created } = this.#client.head ?? head;
    const chunk: ChatChunk = { ...head, object: 'chat.completion.chunk', id, created, choices };
    this.#client.head ??= chunk;
    return chunk;
  }
}
