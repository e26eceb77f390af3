import type { ChatChunk, Usage } from '../wire/chat.ts';
import type { HermesError } from './errors.ts';
import type { Facts } from './exchange.ts';

/** A client's or an upstream's wire format. */
export type Form = 'openai-chat' | 'anthropic-messages' | 'openai-responses' | (string & {});

/** One event. Untouched, its bytes are relayed; looked at and unchanged (compared), too; changed, it is written anew. */
export interface Chunk {
  /** Canonical, parsed on first look, free to change in place or to replace. */
  data: ChatChunk;
  /** The same for hermes' own steps, which do not change it: no comparison is paid. */
  readonly view: Readonly<ChatChunk>;
  /** The event as it came, its blank line included; absent once it was made or changed here. */
  readonly raw: Uint8Array | undefined;
  /** The form of `raw`. */
  readonly form: Form;
}

/** Whole events of one read from the socket: the unit of the hot path. Chunks are cut only when somebody asks. */
export interface Batch {
  /** All of it as it came, comments off; absent when a chunk was made or changed here. */
  readonly bytes: Uint8Array | undefined;
  /** One scan saw a usage object, a finish reason or an error in it. */
  readonly marked: boolean;
  /** Cut on first use. */
  readonly chunks: readonly Chunk[];
  readonly form: Form;
}

/**
 * Pull: whoever reads drives, nobody else does. One reader, one read at a time.
 * The terminal marker (`[DONE]`, `message_stop`) is never in it: the writer at the edge adds it after `null`.
 */
export interface ChunkStream {
  /** `null`: over, and every `onEnd` tapped here has run. Rejects with a HermesError when it failed or was broken off, likewise after the `onEnd`s. */
  read(): Batch | null | Promise<Batch | null>;
  /** Stops the source at once and runs the `onEnd`s. No-op when over. Without a reason: `client_closed`. */
  cancel(reason?: HermesError): Promise<void> | void;
}

/** How an answer, or one try of it, ended. */
export interface Outcome {
  /** `aborted`: the client left (or the try was superseded) before a finish reason came; after one it is complete. */
  status: 'complete' | 'failed' | 'aborted';
  error?: HermesError;
  finishReason?: string;
  /** Of this scope; absent until an upstream or an estimate says. */
  usage?: Usage;
}

/** An upstream's form to the canonical one. Stateful per stream: one event in, at most one canonical chunk out. */
export interface Reader {
  /** `event` is the whole event with its blank line. `null`: it has no counterpart (ping, block stop). `'end'`: the upstream's terminal marker. Throws a HermesError for an error event. */
  read(event: Uint8Array): ChatChunk | null | 'end';
}
/** The canonical form to a client's. Stateful per stream. */
export interface Writer {
  /** The bytes of one canonical chunk in the client's form. */
  write(chunk: ChatChunk): Uint8Array;
  /** A batch that came in the client's own form, as it came; undefined: it must be written chunk by chunk. */
  relay?(batch: Batch): Uint8Array | undefined;
  /**
   * What follows the last chunk: the terminal marker, or the one error event (and then no marker). `hermes`: what hermes has to say, for forms whose
   * last event can carry it; OpenAI's own has it on a chunk.
   */
  end(outcome: Outcome, facts: Facts, hermes?: Readonly<Record<string, unknown>>): Uint8Array;
}
