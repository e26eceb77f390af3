import type {
  ColdSession,
  FoundResponse,
  FoundTurn,
  LedgerRow,
  Page,
  SessionSummary,
  StoredMessage,
  TraceRecord,
  TurnRecord,
} from '../../../contracts/cold-store.ts';
import { LEDGER_COUNTS, toLedgerCounts } from '../../../contracts/ledger-counts.ts';
import type { ChatMessage } from '../../../wire/chat.ts';
import { fromCursor, toCursor } from '../../../wire/cursor.ts';
import { parseJson } from '../../../wire/json.ts';
import { LEDGER_KEYS } from './statements.ts';
import { decodeText, encodeText, toJson } from './text.ts';

/** A row as either client gives it: PostgreSQL's brings BIGINT as text. */
export type Cell = string | number | null;
export type Row = Cell[];

const text = (cell: Cell | undefined): string => decodeText(String(cell ?? ''));
const number = (cell: Cell | undefined): number => Number(cell ?? 0);

/** sequence, tokens, partial, degraded, message: see READ_SESSION. */
export function toColdSession(rows: readonly Row[]): ColdSession | undefined {
  const head = rows.find((row) => number(row[0]) === -1);
  if (head === undefined) return undefined;
  const messages = rows.filter((row) => row !== head).map(toNumberedMessage);
  return {
    version: number(head[1]),
    total: number(head[2]),
    system: parseJson(String(head[4])) as StoredMessage[],
    messages: messages.sort((a, b) => a.sequence - b.sequence),
  };
}
/** sequence, tokens, partial, degraded, message. */
function toNumberedMessage([sequence, tokens, partial, degraded, message]: Row): StoredMessage & { sequence: number } {
  return { sequence: number(sequence), ...toStoredMessage(parseJson(String(message)) as ChatMessage, number(tokens), number(partial), number(degraded)) };
}
function toStoredMessage(message: ChatMessage, tokens: number, partial: number, degraded: number): StoredMessage {
  return { message, tokens, ...(partial === 1 ? { partial: true } : {}), ...(degraded === 1 ? { degraded: true } : {}) };
}

/** See TURN_OF_RESPONSE. */
export function toPlace([version, newest]: Row): { version: number; newest: boolean } {
  return { version: number(version), newest: number(version) === number(newest) };
}

/** See FIND_TURN and MESSAGES_OF_TURN. */
export function toFoundTurn([version, at, model, body, newest]: Row, messages: readonly Row[]): FoundTurn {
  return {
    version: number(version),
    newest: number(version) === number(newest),
    at: number(at),
    model: text(model),
    body: text(body),
    messages: messages.map(toNumberedMessage),
  };
}

/** See FIND_RESPONSE and WHOLE_TURN. */
export function toFoundResponse(version: Cell | undefined, record: Cell | undefined, messages: readonly Row[]): FoundResponse {
  return { version: number(version), record: text(record), messages: messages.map(toNumberedMessage) };
}

export interface TurnRow {
  project: string;
  session: string;
  at: number;
  requestId: string;
  baseVersion: number;
  supersedeFrom: number | null;
  run: string | null;
  body: string | null;
  responseId: string | null;
  responseOwner: string | null;
  response: string | null;
  system: string;
  model: string;
  /** The model's entry in the session's list of models. */
  modelEntry: string;
  tokens: number;
  messages: { message: string; tokens: number; partial: 0 | 1; degraded: 0 | 1 }[];
}
export function toTurnRow(turn: TurnRecord): TurnRow {
  return {
    project: encodeText(turn.project),
    session: encodeText(turn.session),
    at: turn.at,
    requestId: encodeText(turn.requestId),
    baseVersion: turn.baseVersion,
    supersedeFrom: turn.supersedeFrom ?? null,
    run: turn.run ? encodeText(turn.run.mark) : null,
    body: turn.run ? encodeText(turn.run.body) : null,
    responseId: turn.response ? encodeText(turn.response.id) : null,
    responseOwner: turn.response ? encodeText(turn.response.owner) : null,
    response: turn.response ? encodeText(turn.response.record) : null,
    system: toJson(turn.system),
    model: encodeText(turn.model),
    modelEntry: `\n${JSON.stringify(turn.model)}\n`,
    tokens: turn.messages.reduce((sum, message) => sum + message.tokens, 0),
    messages: turn.messages.map((stored) => ({
      message: toJson(stored.message),
      tokens: stored.tokens,
      partial: stored.partial === true ? 1 : 0,
      degraded: stored.degraded === true ? 1 : 0,
    })),
  };
}

export function toSummary(row: Row): SessionSummary {
  return {
    project: text(row[0]),
    session: text(row[1]),
    version: number(row[2]),
    messages: number(row[3]),
    tokens: number(row[4]),
    createdAt: number(row[5]),
    updatedAt: number(row[6]),
    models: String(row[7])
      .split('\n')
      .filter(Boolean)
      .map((entry) => JSON.parse(entry) as string),
  };
}

/** A cursor that is not ours begins at the beginning rather than failing. */
export function decodeCursor(cursor: string | undefined, length: number): (string | number)[] | undefined {
  const place = cursor === undefined ? undefined : fromCursor(cursor);
  return place?.length === length ? place : undefined;
}
/** One row more than `limit` was asked for: it only tells that there is more. */
export function toPage<T>(rows: readonly Row[], limit: number, map: (row: Row) => T, place: (row: Row) => (string | number)[]): Page<T> {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { data: rows.slice(0, limit).map(map), nextCursor: last === undefined ? undefined : toCursor(place(last)) };
}

const MAX_COUNT = 2n ** 63n - 1n;
/** Rows of one key become one, in key order: an upsert may meet a row only once, and two instances must not lock each other out. */
export function mergeLedger(rows: readonly LedgerRow[]): LedgerRow[] {
  const merged = new Map<string, LedgerRow>();
  for (const row of rows) {
    const key = JSON.stringify(LEDGER_KEYS.map((name) => row[name]));
    const sum = merged.get(key);
    if (sum === undefined) merged.set(key, { ...row });
    else addLedgerRow(sum, row);
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}
function addLedgerRow(sum: LedgerRow, row: LedgerRow): void {
  for (const name of LEDGER_COUNTS) sum[name] += row[name];
  sum.cost_nano_usd += row.cost_nano_usd;
}
/** In the order of ADD_TO_LEDGER. Throws on what no engine may take in: sums stay whole. */
export function ledgerValues(row: LedgerRow): (string | number)[] {
  const counts = LEDGER_COUNTS.map((name) => row[name]);
  if (!counts.every(Number.isSafeInteger) || row.cost_nano_usd > MAX_COUNT || row.cost_nano_usd < -MAX_COUNT)
    throw new Error('a ledger row has a count that is not a whole number');
  const names = [row.hour, row.project, row.service, row.user, row.session, row.key, row.route, row.model, row.upstream].map(encodeText);
  return [...names, row.shadow ? 1 : 0, ...counts, String(row.cost_nano_usd)];
}
export function toLedgerRow(row: Row): LedgerRow {
  return {
    hour: text(row[0]),
    project: text(row[1]),
    service: text(row[2]),
    user: text(row[3]),
    session: text(row[4]),
    key: text(row[5]),
    route: text(row[6]),
    model: text(row[7]),
    upstream: text(row[8]),
    shadow: number(row[9]) === 1,
    ...toLedgerCounts((_, index) => number(row[LEDGER_KEYS.length + index])),
    cost_nano_usd: BigInt(String(row[LEDGER_KEYS.length + LEDGER_COUNTS.length])),
  };
}
export function checkLedgerColumns(by: readonly string[]): void {
  const unknown = by.find((name) => !LEDGER_KEYS.some((key) => key === name));
  if (unknown !== undefined) throw new Error(`the ledger has no column ${unknown}; there are ${LEDGER_KEYS.join(', ')}`);
}

/** In the order of WRITE_TRACE. */
export function traceValues(trace: TraceRecord): (string | number | null)[] {
  return [
    encodeText(trace.id),
    trace.startedAt,
    encodeText(trace.requestId),
    encodeText(trace.route),
    trace.status,
    trace.session === undefined ? null : encodeText(trace.session),
    toJson(trace),
    // Hermes' own is the id without its dashes.
    trace.traceId === trace.id.replaceAll('-', '') ? null : encodeText(trace.traceId),
  ];
}
export function toTrace(record: Cell | undefined): TraceRecord {
  const trace = parseJson(String(record)) as TraceRecord;
  return { ...trace, session: trace.session };
}

const MOST_KEY_POINTS = 1000;
/** The end of the keys that begin with `prefix`, in byte order. */
export function prefixEnd(prefix: string): string {
  const points = [...prefix];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // The surrogates' block is no text: the next code point that is one follows it.
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  // Nothing is greater than the last code point: only more of it than any key has.
  return '\u{10ffff}'.repeat(prefix.length + MOST_KEY_POINTS);
}
