import type { ColdStore, FoundTurn, StoredMessage } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { Exchange, SessionTurn } from '../contracts/exchange.ts';
import { type HotStore, StoreUnavailable } from '../contracts/hot-store.ts';
import type { ContextRoom, OpenTurn, RecalledSession, SessionsRoom } from '../contracts/rooms.ts';
import { turnNotKept } from '../contracts/store-away.ts';
import type { Counter, Environment, Log, Metrics } from '../contracts/telemetry.ts';
import type { ChatMessage } from '../wire/chat.ts';
import { windowStart } from '../wire/history-window.ts';
import { copyMessage, recall } from '../wire/recalled.ts';
import { type Branch, findBranch, notHere } from './branch.ts';
import { forgetSession } from './forget-session.ts';
import { type KeptForms, KeptResponses } from './kept-responses.ts';
import { LateTurns } from './late-turns.ts';
import { SessionOpenTurn, type TurnDeps } from './open-turn.ts';
import { findOverlap, type Overlap } from './overlap.ts';
import { resolveItems } from './referred-items.ts';
import { repairTurns } from './repair.ts';
import { SessionLock } from './session-lock.ts';
import { type SessionName, toSessionName } from './session-name.ts';
import { SessionReader } from './session-reader.ts';
import { bare, EMPTY, type SessionState } from './session-state.ts';
import { findStoredTurn, isWhole, toStoredAnswer } from './stored-turn.ts';

export interface SessionsDeps {
  hot: HotStore;
  cold: ColdStore;
  context: Pick<ContextRoom, 'countStored'>;
  log: Log;
  metrics: Metrics;
  environment: Environment;
  kept: KeptForms;
}

const DAY_MS = 86_400_000;
/** A history that differs is looked for so much further back than what was sent: rounds that the caller never saw lie between. */
const LOOK_BACK = 4;
const LOOK_BACK_MORE = 100;
/** Characters. */
const LONG = 8000;

export function createSessionsRoom(deps: SessionsDeps): SessionsRoom {
  const sessions = new Sessions(deps);
  const responses = new KeptResponses(deps);
  return {
    async resolve(exchange) {
      const form = deps.kept(exchange.wants.form);
      if (form) exchange.request = { ...exchange.request, messages: await resolveItems(exchange, form, (name) => responses.find(name)) };
    },
    begin: (exchange) => sessions.begin(exchange),
    recall: (config, project, session) => sessions.recall(config, project, session),
    forget: (project, session) => forgetSession(deps, project, session),
    findResponse: (name) => responses.find(name),
    deleteResponse: (name) => responses.delete(name),
    sweep: (config) => sessions.sweep(config),
    close: () => sessions.close(),
  };
}

/** What is stored, and how what was sent lies over it. */
interface Place {
  state: SessionState;
  overlap: Overlap;
  /** The turn from this sequence number on is stored anew. */
  replacesFrom?: number;
}

class Sessions implements Omit<SessionsRoom, 'resolve' | 'forget' | 'findResponse' | 'deleteResponse'> {
  readonly #deps: SessionsDeps;
  readonly #reads: Counter;
  readonly #lock: SessionLock;
  readonly #reader: SessionReader;
  readonly #late: LateTurns;
  readonly #turns: TurnDeps;

  constructor(deps: SessionsDeps) {
    const { hot, cold, log, metrics, environment } = deps;
    this.#deps = deps;
    this.#reads = metrics.counter('hermes_session_reads_total', 'Histories read, by where they were found', ['tier']);
    this.#lock = new SessionLock({ hot, log, environment });
    this.#reader = new SessionReader({ hot, cold, log });
    this.#late = new LateTurns(cold, log);
    this.#turns = { ...deps, reader: this.#reader, late: this.#late };
  }

  async begin(exchange: Exchange): Promise<OpenTurn> {
    const name = toSessionName(exchange.caller?.project ?? '', exchange.ask.sessionId ?? '');
    const leave = await this.#lock.enter(name, exchange);
    try {
      return await this.#begin(exchange, name, leave);
    } catch (thrown) {
      leave();
      throw thrown;
    }
  }

  async #begin(exchange: Exchange, name: SessionName, leave: () => void): Promise<OpenTurn> {
    const { config, request } = exchange;
    const system = request.messages.filter(isSystem);
    const sent = request.messages.filter((message) => !isSystem(message));
    const asked = performance.now();
    const foundEarlier = await this.#earlier(exchange, name);
    const branch = exchange.ask.continues === undefined ? undefined : await this.#branch(exchange, name, foundEarlier);
    const earlier = branch ? branch.earlier : foundEarlier;
    const { state, overlap, replacesFrom } = await (branch ? this.#placeAt(name, config, sent, branch) : this.#place(name, config, sent, earlier));
    exchange.trace.record('store read', asked, performance.now(), { tier: state.tier, messages: state.messages.length });
    if (exchange.ask.continues && state.version === 0) throw notHere();
    const recalled = windowOf(state.messages, overlap.keep, config.session.max_history_messages);
    const history = recalled.map(recall);
    const keptSystem = system.length > 0 ? [] : state.system;
    const before = keptSystem.map(recall);
    const into = branch && exchange.ask.store !== false ? branch.name : name;
    const turn: SessionTurn = { id: into.session, project: name.project, historyMessages: recalled.length, historyTokens: tokensOf(recalled) };
    const { context } = this.#deps;
    exchange.request = { ...request, messages: [...system, ...before, ...repairTurns([...history, ...overlap.fresh])] };
    exchange.session = turn;
    return new SessionOpenTurn(this.#turns, {
      name: into,
      state: branch ? { ...EMPTY, system: state.system, messages: recalled.map(bare) } : state,
      history,
      branches: branch !== undefined,
      system: system.length > 0 && !sameSystem(system, state.system) ? system.map(copyMessage) : undefined,
      fresh: overlap.fresh.map((message) => ({ message: copyMessage(message), tokens: isLong(message) ? context.countStored(message) : undefined })),
      keep: branch ? recalled.length : overlap.keep,
      supersedeFrom: branch ? undefined : (replacesFrom ?? supersedeFrom(state, overlap)),
      stored: earlier && isWhole(earlier) ? toStoredAnswer(earlier, exchange) : undefined,
      maxAnswer: config.server.max_event_bytes,
      leave,
    });
  }

  /** What an earlier try of this request has stored. */
  async #earlier(exchange: Exchange, name: SessionName): Promise<FoundTurn | undefined> {
    const { cold, environment } = this.#deps;
    try {
      return await findStoredTurn(cold, exchange, name, environment.now());
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      if (exchange.config.session.durability === 'strict') throw turnNotKept(thrown);
      return undefined;
    }
  }

  /** An earlier try of this request has decided already. */
  async #branch(exchange: Exchange, name: SessionName, earlier: FoundTurn | undefined): Promise<Branch | undefined> {
    if (earlier && (earlier.newest || isWhole(earlier))) return undefined;
    const { cold, environment, log } = this.#deps;
    try {
      return await findBranch(exchange, name, { cold, freshId: environment.uuid, findEarlier: (own) => this.#earlier(exchange, own) });
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      if (exchange.config.session.durability === 'strict') throw turnNotKept(thrown);
      log.warn({ durability: 'relaxed' }, 'the cold store is away: where a response stands in its session is not known, so the session goes on');
      return undefined;
    }
  }

  /** The state that a branch begins with, and how what was sent lies over it. */
  async #placeAt(name: SessionName, config: Config, sent: readonly ChatMessage[], { version }: Branch): Promise<Place> {
    try {
      const state = await this.#reader.readCold(name, lookBack(config, sent), version);
      this.#reads.inc({ tier: state.tier });
      return { state, overlap: findOverlap(state.messages, sent) };
    } catch (thrown) {
      throw thrown instanceof StoreUnavailable ? turnNotKept(thrown) : thrown;
    }
  }

  /** The stored state, and how what was sent lies over it. `earlier` is replaced when nothing came after it. */
  async #place(name: SessionName, config: Config, sent: readonly ChatMessage[], earlier: FoundTurn | undefined): Promise<Place> {
    if (earlier?.newest && !isWhole(earlier)) {
      const first = earlier.messages[0]?.sequence ?? 0;
      const state = await this.#reader.readCold(name, config.session.max_history_messages + earlier.messages.length);
      this.#reads.inc({ tier: state.tier });
      const before = state.messages.filter((_, index) => (state.sequences?.[index] ?? 0) < first);
      const overlap = findOverlap(before, sent);
      return { state, overlap, ...(overlap.keep === before.length ? { replacesFrom: first } : {}) };
    }
    const state = await this.#read(name, config);
    this.#reads.inc({ tier: state.tier });
    const overlap = findOverlap(state.messages, sent);
    const differs = overlap.keep < state.messages.length;
    if (!differs || (state.sequences !== undefined && !overlap.lost)) return { state, overlap };
    // Where exactly it differs only cold can say.
    try {
      const whole = await this.#reader.readCold(name, lookBack(config, sent));
      return { state: whole, overlap: findOverlap(whole.messages, sent) };
    } catch (thrown) {
      throw thrown instanceof StoreUnavailable ? turnNotKept(thrown) : thrown;
    }
  }

  async #read(name: SessionName, config: Config): Promise<SessionState> {
    // What cold does not have yet is in hot; what hot has lost, in the turns that wait.
    const waiting = this.#late.messagesOf(name.key);
    try {
      if (waiting.length === 0) return await this.#reader.read(name, config);
      const state = await this.#reader.readUnchecked(name);
      if (state.tier !== 'miss') return state;
      return withWaiting(await this.#reader.readCold(name, config.session.max_history_messages), waiting, config);
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      if (config.session.durability === 'strict') throw turnNotKept(thrown);
      this.#deps.log.warn({ durability: 'relaxed' }, 'the cold store is away: this turn goes on with what is at hand');
      const state = await this.#reader.readUnchecked(name);
      return state.tier === 'miss' ? withWaiting(EMPTY, waiting, config) : state;
    }
  }

  async recall(config: Config, project: string, session: string): Promise<RecalledSession> {
    const state = await this.#read(toSessionName(project, session), config);
    return { system: state.system.map(recall), history: repairTurns(state.messages.map(recall)), tokens: tokensOf(state.messages) };
  }

  async sweep(config: Config): Promise<number> {
    const days = config.session.retention_days;
    return days > 0 ? this.#deps.cold.deleteSessionsBefore(this.#deps.environment.now() - days * DAY_MS) : 0;
  }

  close(): Promise<void> {
    return this.#late.close();
  }
}

function lookBack(config: Config, sent: readonly ChatMessage[]): number {
  return Math.max(config.session.max_history_messages, sent.length * LOOK_BACK + LOOK_BACK_MORE);
}

/** The newest of those that stay. Mostly all of them, as they are. */
function windowOf(stored: readonly StoredMessage[], keep: number, max: number): readonly StoredMessage[] {
  const kept = keep < stored.length ? stored.slice(0, keep) : stored;
  const start = windowStart(kept, max);
  return start === 0 ? kept : kept.slice(start);
}

function tokensOf(stored: readonly StoredMessage[]): number {
  return stored.reduce((total, { tokens }) => total + tokens, 0);
}

/** Counted while the model answers; short ones are counted together with the answer. */
function isLong({ content }: ChatMessage): boolean {
  return typeof content === 'string' ? content.length > LONG : Array.isArray(content);
}

function isSystem(message: ChatMessage): boolean {
  return message.role === 'system' || message.role === 'developer';
}

function sameSystem(sent: readonly ChatMessage[], stored: readonly StoredMessage[]): boolean {
  return sent.length === stored.length && sent.every((message, index) => JSON.stringify(message) === JSON.stringify(stored[index]?.message));
}

/** 0: everything, also what lies before what was read. */
function supersedeFrom(state: SessionState, overlap: Overlap): number | undefined {
  if (overlap.keep >= state.messages.length) return undefined;
  return overlap.keep === 0 ? 0 : (state.sequences?.[overlap.keep] ?? 0);
}

function withWaiting(state: SessionState, waiting: readonly StoredMessage[], config: Config): SessionState {
  const { sequences: _sequences, ...rest } = state;
  const messages = [...state.messages, ...waiting];
  return { ...rest, messages: messages.slice(windowStart(messages, config.session.max_history_messages)) };
}
