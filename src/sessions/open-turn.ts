import { type ColdStore, type StoredMessage, type TurnRecord, VersionConflict } from '../contracts/cold-store.ts';
import { HermesError } from '../contracts/errors.ts';
import type { AnswerInit, Exchange, Facts } from '../contracts/exchange.ts';
import { type HotStore, StoreUnavailable } from '../contracts/hot-store.ts';
import { recapKey } from '../contracts/recap-key.ts';
import type { ContextRoom, OpenTurn } from '../contracts/rooms.ts';
import { turnNotKept } from '../contracts/store-away.ts';
import type { ChunkStream, Outcome } from '../contracts/stream.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import type { ChatMessage } from '../wire/chat.ts';
import { windowStart } from '../wire/history-window.ts';
import { makerOf, withStoredMaker } from '../wire/maker.ts';
import { AnswerCapture } from './answer-capture.ts';
import { type KeptForms, toKept, toRecord } from './kept-responses.ts';
import type { LateTurns } from './late-turns.ts';
import type { SessionName } from './session-name.ts';
import type { SessionReader } from './session-reader.ts';
import { bare, type Marks, type SessionState, withMarks } from './session-state.ts';

export interface TurnDeps {
  hot: HotStore;
  cold: ColdStore;
  reader: SessionReader;
  late: LateTurns;
  context: Pick<ContextRoom, 'countStored'>;
  log: Log;
  environment: Environment;
  kept: KeptForms;
}
/** What `begin` found out. */
export interface BegunTurn {
  name: SessionName;
  state: SessionState;
  history: readonly ChatMessage[];
  /** The session is a branch of another one, whose messages these are: they are stored in it first. */
  branches: boolean;
  /** Copies of what the caller sent; no system messages: those that are stored stay. */
  system: ChatMessage[] | undefined;
  fresh: { message: ChatMessage; tokens: number | Promise<number> | undefined }[];
  /** Where the caller's history differs from ours: so many of the stored messages stay. */
  keep: number;
  supersedeFrom: number | undefined;
  /** The answer of an earlier try, whose turn is stored. */
  stored: AnswerInit | undefined;
  /** Characters that an answer may have. */
  maxAnswer: number;
  leave: () => void;
}

/** Another instance without a lease can only win so often in a row. */
const MAX_CONFLICTS = 8;

export class SessionOpenTurn implements OpenTurn {
  readonly history: readonly ChatMessage[];
  readonly #deps: TurnDeps;
  readonly #begun: BegunTurn;
  readonly #capture: AnswerCapture;
  #ended = false;

  constructor(deps: TurnDeps, begun: BegunTurn) {
    this.#deps = deps;
    this.#begun = begun;
    this.#capture = new AnswerCapture(begun.maxAnswer);
    this.history = begun.history;
  }

  get stored(): AnswerInit | undefined {
    return this.#begun.stored;
  }

  watch(stream: ChunkStream): ChunkStream {
    return this.#capture.watch(stream);
  }

  async end(exchange: Exchange, outcome: Outcome): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    try {
      const answer = this.stored || exchange.ask.store === false ? undefined : this.#capture.take(exchange, outcome);
      if (answer) await this.#commit(exchange, answer.message, answer.partial);
    } finally {
      this.#begun.leave();
    }
  }

  async #commit(exchange: Exchange, answer: ChatMessage, partial: boolean): Promise<void> {
    const { name, state, branches, fresh, system: sent, supersedeFrom } = this.#begun;
    const facts: Facts = exchange.answer?.facts ?? {};
    const rounds = (exchange.turnMessages ?? []).map((message) => withStoredMaker(message, makerOf(message) ?? facts.maker));
    const silent = partial && !answer.content && !answer.reasoning_content;
    const [newSystem, messages] = await Promise.all([
      sent && Promise.all(sent.map((message) => this.#count(message))),
      Promise.all([
        ...fresh.map(({ message, tokens }) => this.#count(message, tokens)),
        ...rounds.map((message) => this.#count(message)),
        ...(silent ? [] : [this.#count(withStoredMaker(answer, facts.maker), undefined, { partial, degraded: facts.degraded })]),
      ]),
    ]);
    const toTurn = (baseVersion: number, system: StoredMessage[], messages: StoredMessage[]): TurnRecord => ({
      project: name.project,
      session: name.session,
      at: this.#deps.environment.now(),
      requestId: exchange.id,
      baseVersion,
      system,
      messages,
      model: facts.model ?? exchange.route?.model ?? '',
    });
    // A turn of its own: the answer may be deleted without what came before it.
    const begunOn = branches && state.messages.length > 0 ? await this.#store(exchange, toTurn(0, state.system, state.messages)) : state.version;
    const turn = toTurn(begunOn ?? state.version, newSystem ?? state.system, messages);
    if (supersedeFrom !== undefined) turn.supersedeFrom = supersedeFrom;
    if (exchange.run?.mark !== undefined) turn.run = { mark: exchange.run.mark, body: exchange.run.fingerprint };
    const kept = partial ? undefined : this.#kept(exchange);
    if (kept) turn.response = { id: kept.id, owner: exchange.principal?.id ?? '', record: toRecord(kept, fresh.length) };
    const asked = performance.now();
    const version = await this.#store(exchange, turn);
    exchange.trace.record('store append', asked, performance.now(), { messages: turn.messages.length });
    // A summary may tell of what no longer counts.
    if (supersedeFrom !== undefined) await this.#deps.cold.deleteValue(recapKey(name.project, name.session)).catch(() => undefined);
    await this.#toHot(exchange, turn, version);
  }

  /** The answer as the client was given it, with what it said in every round. */
  #kept(exchange: Exchange): ReturnType<typeof toKept> {
    const completion = this.#capture.whole(exchange);
    return completion && toKept(this.#deps.kept, exchange, completion);
  }

  async #count(message: ChatMessage, tokens: number | Promise<number> = this.#deps.context.countStored(message), marks?: Marks): Promise<StoredMessage> {
    return withMarks(message, await tokens, marks);
  }

  /** Durable when it resolves; gives the new version, or undefined where another try of the same request came first. */
  async #store(exchange: Exchange, turn: TurnRecord): Promise<number | undefined> {
    const { cold, late } = this.#deps;
    const relaxed = exchange.config.session.durability === 'relaxed';
    let { baseVersion } = turn;
    // Behind waiting turns of its own session a turn waits as well.
    if (relaxed && late.of(this.#begun.name.key).length > 0) return this.#queue(turn);
    try {
      for (let conflicts = 0; ; conflicts++) {
        try {
          return await cold.appendTurn(baseVersion === turn.baseVersion ? turn : { ...turn, baseVersion });
        } catch (thrown) {
          if (!(thrown instanceof VersionConflict) || conflicts >= MAX_CONFLICTS) throw thrown;
          // Somebody committed meanwhile (a lease that ran out, a hot store away): this turn comes after theirs, whole.
          // A differing history is told from a state that is no more: the caller must look again.
          if (turn.supersedeFrom !== undefined) throw new HermesError('session_busy', 'The session has moved on while this turn ran; send it again.');
          const theirs = turn.run && (await cold.findTurn(turn.project, turn.session, turn.run.mark));
          if (theirs && theirs.version > turn.baseVersion) return undefined;
          baseVersion = await cold.sessionVersion(turn.project, turn.session);
        }
      }
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      this.#deps.reader.coldAway = true;
      if (relaxed) return this.#queue(turn);
      throw turnNotKept(thrown);
    }
  }

  #queue(turn: TurnRecord): number {
    if (!this.#deps.late.add(turn)) throw turnNotKept(undefined);
    return turn.baseVersion + 1;
  }

  /** Best effort: what hot misses is read from cold. */
  async #toHot(exchange: Exchange, turn: TurnRecord, version: number | undefined): Promise<void> {
    const { hot, reader } = this.#deps;
    const { name, state, keep } = this.#begun;
    const { max_history_messages, storage } = exchange.config.session;
    const ttl = storage.hot_ttl_seconds;
    const whole = keep < state.messages.length || state.version === 0;
    await reader.toHot(name, async () => {
      // Others have committed in between: what hot holds is no longer what this turn was begun on.
      if (version !== turn.baseVersion + 1) return hot.deleteSession(name.key);
      if (!whole) return hot.appendTurn(name.key, version, turn.system, turn.messages, max_history_messages, ttl);
      const messages = state.messages.slice(0, keep).map(bare);
      messages.push(...turn.messages);
      return hot.putSession(name.key, { version, system: turn.system, messages: messages.slice(windowStart(messages, max_history_messages)) }, ttl);
    });
  }
}
