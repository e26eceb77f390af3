import type { ColdStore, StoredMessage } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import { type HotStore, StoreUnavailable } from '../contracts/hot-store.ts';
import type { ContextRoom, OpenTurn, SessionsRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import type { ChatMessage } from '../wire/chat.ts';
import { windowStart } from '../wire/history-window.ts';
import { LateTurns } from './late-turns.ts';
import { SessionOpenTurn, storeAway, type TurnDeps } from './open-turn.ts';
import { findOverlap, type Overlap } from './overlap.ts';
import { repairTurns } from './repair.ts';
import { SessionLock } from './session-lock.ts';
import { type SessionName, toSessionName } from './session-name.ts';
import { SessionReader } from './session-reader.ts';
import { copyMessage, EMPTY, type SessionState } from './session-state.ts';

export interface SessionsDeps {
  hot: HotStore;
  cold: ColdStore;
  context: Pick<ContextRoom, 'countMessage' | 'remember'>;
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

const DAY_MS = 86_400_000;
/** A history that differs is looked for so much further back than what was sent: rounds that the caller never saw lie between. */
const LOOK_BACK = 4;
const LOOK_BACK_MORE = 100;
/** Characters. */
const LONG = 8000;

export function createSessionsRoom(deps: SessionsDeps): SessionsRoom {
  const { hot, cold, context, log, metrics, environment } = deps;
  const reads = metrics.counter('hermes_session_reads_total', 'Histories read, by where they were found', ['tier']);
  const lock = new SessionLock({ hot, log, environment });
  const reader = new SessionReader({ hot, cold, log });
  const late = new LateTurns(cold, log);
  const turnDeps: TurnDeps = { hot, cold, reader, late, context, log, environment };

  const read = async (name: SessionName, config: Config): Promise<SessionState> => {
    // What cold does not have yet is in hot; what hot has lost, in the turns that wait.
    const waiting = late.messagesOf(name.key);
    try {
      const state = waiting.length > 0 ? await reader.readUnchecked(name) : await reader.read(name, config);
      return state.tier === 'miss' && waiting.length > 0
        ? withWaiting(await reader.readCold(name, config.session.max_history_messages), waiting, config)
        : state;
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      if (config.session.durability === 'strict') throw storeAway(thrown);
      log.warn({ durability: 'relaxed' }, 'the cold store is away: this turn goes on with what is at hand');
      const state = await reader.readUnchecked(name);
      return state.tier === 'miss' ? withWaiting(EMPTY, waiting, config) : state;
    }
  };

  const begin = async (exchange: Exchange, name: SessionName, leave: () => void): Promise<OpenTurn> => {
    const { config, request } = exchange;
    let state = await read(name, config);
    reads.inc({ tier: state.tier });
    const sent = request.messages.filter((message) => !isSystem(message));
    const system = request.messages.filter(isSystem);
    let overlap = findOverlap(state.messages, sent);
    if (overlap.keep < state.messages.length && (state.sequences === undefined || overlap.lost)) {
      const window = Math.max(config.session.max_history_messages, sent.length * LOOK_BACK + LOOK_BACK_MORE);
      state = await reader.readCold(name, window).catch((thrown) => {
        throw thrown instanceof StoreUnavailable ? storeAway(thrown) : thrown;
      });
      overlap = findOverlap(state.messages, sent);
    }
    const kept = state.messages.slice(0, overlap.keep);
    const recalled = kept.slice(windowStart(kept, config.session.max_history_messages));
    const history = outgoing(context, recalled);
    const replaced = system.length > 0 && !sameSystem(system, state.system);
    const before = system.length > 0 ? system : outgoing(context, state.system);
    exchange.request = { ...request, messages: [...before, ...repairTurns([...history, ...overlap.fresh])] };
    exchange.session = {
      id: name.session,
      project: name.project,
      historyMessages: recalled.length,
      historyTokens: recalled.reduce((total, { tokens }) => total + tokens, 0),
    };
    const fresh = overlap.fresh.map((message) => ({ message: copyMessage(message), tokens: isLong(message) ? context.countMessage(message, '') : undefined }));
    return new SessionOpenTurn(turnDeps, {
      name,
      state,
      history,
      system: replaced ? system.map(copyMessage) : undefined,
      fresh,
      keep: overlap.keep,
      supersedeFrom: supersedeFrom(state, overlap),
      leave,
    });
  };

  return {
    async begin(exchange) {
      const name = toSessionName(exchange.caller?.project ?? '', exchange.ask.sessionId ?? '');
      const leave = await lock.enter(name, exchange);
      try {
        return await begin(exchange, name, leave);
      } catch (thrown) {
        leave();
        throw thrown;
      }
    },
    async recall(config, project, session) {
      const state = await read(toSessionName(project, session), config);
      const tokens = state.messages.reduce((total, message) => total + message.tokens, 0);
      return { system: outgoing(context, state.system), history: repairTurns(outgoing(context, state.messages)), tokens };
    },
    async forget(project, session) {
      const name = toSessionName(project, session);
      const existed = await cold.deleteSession(project, session);
      // Away: the store deletes it before it is used again.
      await hot.deleteSession(name.key).catch((thrown) => log.warn({ err: thrown }, 'a deleted session could not be deleted in the hot store yet'));
      return existed;
    },
    async sweep(config) {
      const days = config.session.retention_days;
      return days > 0 ? cold.deleteSessionsBefore(environment.now() - days * DAY_MS) : 0;
    },
    close: () => late.close(),
  };
}

/** Copies that know their counts. */
function outgoing(context: Pick<ContextRoom, 'remember'>, stored: readonly StoredMessage[]): ChatMessage[] {
  return stored.map(({ message, tokens }) => {
    const copy = copyMessage(message);
    context.remember(copy, tokens);
    return copy;
  });
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
