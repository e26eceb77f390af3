/** What the store and its thread say to each other. Arguments travel as JSON text: it is also what the journal keeps, so it is written once. */
export type OperationName =
  | 'readSession'
  | 'sessionVersion'
  | 'appendTurn'
  | 'findTurn'
  | 'findResponse'
  | 'turnOfResponse'
  | 'deleteTurn'
  | 'listSessions'
  | 'deleteSession'
  | 'deleteSessionsBefore'
  | 'getValue'
  | 'setValue'
  | 'deleteValue'
  | 'listValues'
  | 'addToLedger'
  | 'readLedger'
  | 'writeTraces'
  | 'readTrace'
  | 'listTraces'
  | 'deleteTracesBefore'
  | 'sweep'
  | 'healthy';

export type Request = [id: number, operation: OperationName, args: string];
/** `value` is the result, or the error's words. */
export type Reply = [id: number, outcome: 'done' | 'conflict' | 'refused' | 'unavailable', value: unknown];

export type ToThread = { requests: Request[] } | { close: true };
export type FromThread =
  | { replies: Reply[] }
  | { opened: true }
  | { failed: string }
  | { closed: true }
  | { log: { level: 'info' | 'warn' | 'error'; fields: object; message: string } };

export interface ThreadOptions {
  /** Absolute; undefined: in memory only. */
  file: string | undefined;
  /** Names this store in the lock file, also after its thread had to be started anew. */
  owner: string;
}
