import type { ChatMessage } from '../wire/chat.ts';
import type { ModelCall, Span } from './exchange.ts';
import type { LedgerSums } from './ledger-counts.ts';

export interface StoredMessage {
  message: ChatMessage;
  /** By the encoding that counted it; never counted twice. */
  tokens: number;
  /** The stream was broken off by the client: it ends where the client left. */
  partial?: boolean;
  /** A fallback answered. */
  degraded?: boolean;
}
export interface TurnRecord {
  project: string;
  session: string;
  /** Unix milliseconds. */
  at: number;
  requestId: string;
  /** The version that this turn was begun on; a commit on any other version is refused (`conflict`). */
  baseVersion: number;
  /** The session's system prompt after this turn, in order. */
  system: StoredMessage[];
  messages: StoredMessage[];
  /** Set when the caller's history differs from ours: earlier messages from this sequence number on no longer count (kept, marked superseded). */
  supersedeFrom?: number;
  model: string;
  /** An answer that is given again by its id, to the one who was given it. */
  response?: { id: string; owner: string; record: string };
  /** Where a repeat of the request may come after a crash: by what it finds this turn, and what tells its body from another one. */
  run?: { mark: string; body: string };
}
/** A turn that a run has stored. */
export interface FoundTurn {
  version: number;
  /** Nothing was stored in the session after it. */
  newest: boolean;
  /** Unix milliseconds. */
  at: number;
  model: string;
  /** Of the request's body. */
  body: string;
  /** Those that still count. */
  messages: (StoredMessage & { sequence: number })[];
}
/** The answer of a turn that is given again by its id. */
export interface FoundResponse {
  version: number;
  record: string;
  /** All of the turn's, also those that no longer count. */
  messages: StoredMessage[];
}
export interface ColdSession {
  version: number;
  system: StoredMessage[];
  /** The newest `limit` that count, oldest first. */
  messages: (StoredMessage & { sequence: number })[];
  /** All that count. */
  total: number;
}
export interface SessionSummary {
  project: string;
  session: string;
  version: number;
  messages: number;
  tokens: number;
  createdAt: number;
  updatedAt: number;
  models: string[];
}
/** Hourly sums, keyed by everything that a report groups by. Counts are whole numbers, money integer nano-dollars. */
/** What tells lines of the books apart. */
export interface LedgerKey {
  hour: string; // 2026-11-30T17:00Z
  project: string;
  service: string;
  user: string;
  session: string;
  key: string;
  route: string;
  model: string;
  upstream: string;
  shadow: boolean;
}
export interface LedgerRow extends LedgerKey, LedgerSums {}
export interface TraceRecord {
  id: string;
  traceId: string;
  requestId: string;
  /** Unix milliseconds. */
  startedAt: number;
  durationMs: number;
  status: number;
  route: string;
  model: string;
  service: string;
  session: string | undefined;
  spans: readonly Span[];
  calls: readonly ModelCall[];
  facts: Record<string, unknown>;
}
export interface TraceQuery {
  limit: number;
  cursor?: string;
  requestId?: string;
  /** The one that a caller gave (W3C Trace Context). */
  traceId?: string;
  route?: string;
  status?: number;
  session?: string;
  /** Unix milliseconds; `from` <= started < `to`. */
  from?: number;
  to?: number;
}
/** Rows with `from <= hour < to`, summed by `by`. */
export interface LedgerQuery {
  from: string;
  to: string;
  by: readonly string[];
  shadow: 'without' | 'with' | 'only';
  /** Only of this project. */
  project?: string;
  /** Only of this session: found by an index, however long the books are. */
  session?: string;
}
export interface Page<T> {
  data: T[];
  nextCursor: string | undefined;
}
/**
 * Complete and durable: when a write resolves it survives `kill -9` and a power cut. Rejects with `StoreUnavailable`
 * when the engine is away, with `VersionConflict` when somebody else committed first.
 */
export interface ColdStore {
  readonly name: 'sqljs' | 'postgres';
  /** Runs migrations under a lock. */
  open(): Promise<void>;
  /** `at`: as it stood after the turn of this version, with the system prompt of today. */
  readSession(project: string, session: string, limit: number, at?: number): Promise<ColdSession | undefined>;
  sessionVersion(project: string, session: string): Promise<number>;
  /** Appends a turn, whole or not at all; gives the new version. */
  appendTurn(turn: TurnRecord): Promise<number>;
  /** The turn that a run of this mark has stored. */
  findTurn(project: string, session: string, mark: string): Promise<FoundTurn | undefined>;
  listSessions(query: { project?: string; limit: number; cursor?: string }): Promise<Page<SessionSummary>>;
  /** The newest of this id that this owner was given. */
  findResponse(project: string, session: string, response: { id: string; owner: string }): Promise<FoundResponse | undefined>;
  /** The newest turn whose answer has this id, whoever was given it. `newest`: nothing was stored in the session after it. */
  turnOfResponse(project: string, session: string, id: string): Promise<{ version: number; newest: boolean } | undefined>;
  /** Really deletes a turn; the session moves to another version, and goes with its last turn. */
  deleteTurn(project: string, session: string, version: number): Promise<boolean>;
  /** Really deletes, with the session's summary (`recapKey`). */
  deleteSession(project: string, session: string): Promise<boolean>;
  deleteSessionsBefore(at: number): Promise<number>;
  /** Small durable values: run logs, tool results, budget states, stored outcomes. `ifAbsent` tells whether it was set. */
  getValue(key: string): Promise<string | undefined>;
  setValue(key: string, value: string, expiresAt: number | undefined, ifAbsent?: boolean): Promise<boolean>;
  deleteValue(key: string): Promise<void>;
  /** By prefix, oldest first. */
  listValues(prefix: string, limit: number): Promise<{ key: string; value: string }[]>;
  /**
   * Of engines that live in this process: keeps what a call adds to the batch that is being filled where `kill -9` does not reach it, in this very turn of the event loop. `line` names its
   * row within the batch, whose key is `key`. What a process leaves is added to the ledger when the store is opened again.
   */
  noteCall?(batchId: string, line: string, key: LedgerKey, added: LedgerSums): void;
  /** Adds to the hourly sums; idempotent by batch id. */
  addToLedger(batchId: string, rows: readonly LedgerRow[]): Promise<void>;
  readLedger(query: LedgerQuery): Promise<LedgerRow[]>;
  writeTraces(traces: readonly TraceRecord[]): Promise<void>;
  readTrace(id: string): Promise<TraceRecord | undefined>;
  listTraces(query: TraceQuery): Promise<Page<TraceRecord>>;
  deleteTracesBefore(at: number): Promise<number>;
  healthy(): Promise<boolean>;
  close(): Promise<void>;
}
export class VersionConflict extends Error {
  constructor(session: string) {
    super(`session ${session} has moved on`);
    this.name = 'VersionConflict';
  }
}
