import type { ChatMessage, ChatRequest } from '../wire/chat.ts';
import type { Answer, AnswerInit, ToolCallFact } from './answer.ts';
import type { Config, Priority } from './config.ts';
import type { HermesError } from './errors.ts';
import type { ModelCall } from './model-call.ts';
import type { Form } from './stream.ts';
import type { Trace } from './trace.ts';
import type { UpstreamTarget } from './upstream-target.ts';

export type * from './answer.ts';
export type * from './model-call.ts';
export type * from './trace.ts';
export type * from './upstream-target.ts';

/** Hermes' extension fields, typed, already taken out of the request. Absent when the caller did not say. */
export interface Ask {
  sessionId?: string;
  /** Hermes has named the session for this request: a repeat of it names another one. */
  sessionIsNew?: true;
  /** The id of the answer that the caller goes on with: its session must be there already, and is seen up to it. */
  continues?: string;
  /** Messages of the request stand for items of earlier answers, which the session step puts in their place. */
  refers?: true;
  /** Nothing of this turn is kept: the session is only read. */
  store?: false;
  preferModel?: string;
  /** Names of server-side tools that the caller wants on offer; absent: all that the rule allows. */
  tools?: string[];
  /** The whole request's deadline in milliseconds from its arrival. */
  timeoutMs?: number;
  userLevel?: string;
  serviceType?: string;
  project?: string;
  requestId?: string;
  priority?: Priority;
  /** OpenAI's own `user` field. */
  user?: string;
}

/** What the edge will write. */
export interface Wants {
  stream: boolean;
  form: Form;
  /** A `hermes` object in the body: an extension field was used, or `x-hermes-verbose: 1`. */
  verbose: boolean;
  /** Usage in the stream was asked for (`stream_options.include_usage`). */
  usage: boolean;
  commit: 'content' | 'complete' | undefined;
}

/** The caller's own bytes. `exchange.request.messages === inbound.request.messages` means that nobody replaced them. */
export interface Inbound {
  form: Form;
  method: string;
  /** Path with its query, as it came. */
  path: string;
  /** Undefined where the body is not read (pass-through). */
  bytes: Uint8Array | undefined;
  /** The body as parsed, hermes' own fields in it; its members are the very objects that the request was made of. */
  body?: unknown;
  /** A plugin of the user's has had its hands on the request: that a member is the same object does not say that it is unchanged. */
  touched?: boolean;
  /** As the door made it. */
  request: ChatRequest;
  /** What the caller proved itself with; for the step `auth` alone, which removes it. */
  credential?: Credential | undefined;
  remoteAddress: string;
}
export type Credential =
  | { kind: 'key'; key: string /** Whose it is, once the access room has found it: it is not hashed twice in one request. */; principal?: Principal }
  | { kind: 'signature'; service: string; timestamp: string; nonce: string; signature: string; contentSha256: string | undefined };

/** Who asks: the outcome of authentication, with what it may do. */
export interface Principal {
  /** The key's id or `signature:<service>`; the first part of every stored key. */
  id: string;
  service: string;
  /** Patterns: what `service_type` may choose among. */
  services: readonly string[];
  project: string;
  projects: readonly string[];
  admin: boolean;
  /** Patterns with `*`; what it may use. */
  models: readonly string[];
  tools: readonly string[];
  userLevels: readonly string[];
  priorities: readonly string[];
  /** Paths that it may pass through. */
  passthrough: readonly string[];
}

/** Who and what counts in limits, books and labels: the principal with what the request chose among its own. */
export interface Caller {
  service: string;
  project: string;
  user: string | undefined;
  userLevel: string | undefined;
  priority: Priority;
}

/** One turn of a session, between `begin` and commit or rollback. */
export interface SessionTurn {
  id: string;
  project: string;
  /** Stored messages that were put before the request. */
  historyMessages: number;
  /** Tokens of these, as counted when they were stored. */
  historyTokens: number;
}

/** Whose rules decided while a rollout is on. */
export type Arm = 'live' | 'candidate';

export interface RouteDecision {
  /** The rule's id, `default` when nothing hit, `none` when the rules were skipped. */
  rule: string;
  /** The model's registry id. */
  model: string;
  /** The rule's tools; undefined: no rule, so no bound but the key's. */
  tools: readonly string[] | undefined;
  /** The caller named the model itself. */
  explicit: boolean;
  /** Set while a rollout is on and the rules decided. */
  arm?: Arm;
  priority?: Priority;
  /** What the schedule or a budget did: the entry's id, and the model before it. */
  costRule?: string;
  modelBeforeCost?: string;
}

/** One try on one upstream. */
export interface Attempt {
  /** Counts from 1 within the model call. */
  number: number;
  /** The model (registry id) that this try serves. */
  model: string;
  upstream: UpstreamTarget;
  /** The messages fitted to this target by `trim`; the request itself stays as it was. */
  request?: ChatRequest;
}

/**
 * A request's run, as idempotency keeps it: the same one however many callers wait for it, and whatever crashed before.
 * Absent on an exchange that nobody keeps (shadow).
 */
export interface Run {
  /** The request id that the run goes by: what tool calls derive their ids from. */
  readonly id: string;
  /** The identity of the caller whose id it is. */
  readonly owner: string;
  /** What tells its body from another one under the same id. */
  readonly fingerprint: string;
  /** An earlier try of this request may have left a log. */
  readonly resumable: boolean;
  /** By what a repeat finds the turn that this run has stored; undefined: no repeat can name the run. */
  readonly mark: string | undefined;
  /** Tools with side effects are on offer: from now on a hang-up no longer ends the run at once, and other instances can find it. */
  offer(): Promise<void>;
  /** May a call with side effects begin? Waits for a repeat when everybody has left; once true, the run goes on to its end. */
  begin(): Promise<boolean>;
  /** What has been done so far, durable. */
  readonly log: RunLog;
}
/** Steps of a run, each written once. Rejects when the store is away. */
export interface RunLog {
  /** Everything that tries of this request have written, by step. */
  read(): Promise<Map<string, string>>;
  /** Durable when it resolves. False: this step is written already (by another try, maybe on another instance). */
  write(step: string, value: string): Promise<boolean>;
  readStep(step: string): Promise<string | undefined>;
}

/** Tokens held in the limits' buckets from admission to the answer's end. */
export interface Reservation {
  /** The recalled history, as a debt, at the first send; once. */
  topUp(tokens: number): void;
  /** Settles what was reserved against what was used. Once; later calls are no-ops. */
  settle(calls: readonly ModelCall[]): void;
}

export interface Exchange {
  /** The request id: the caller's, or fresh. */
  readonly id: string;
  /** The generation it began with. */
  readonly config: Config;
  /** The caller's, lower case, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly ask: Ask;
  readonly wants: Wants;
  readonly inbound: Inbound;
  /** Canonical; replace it or change it in place. */
  request: ChatRequest;
  /** Each set by the step of that name. */
  principal: Principal | undefined;
  caller: Caller | undefined;
  session: SessionTurn | undefined;
  /** Finished tool rounds of this turn, in order (the model's message with its calls, then their results): pushed by `tools`, stored by `session` before the answer. */
  turnMessages?: ChatMessage[] | undefined;
  /** Set by limits. */
  reservation?: Reservation | undefined;
  /** Set by idempotency on the fork that it runs. */
  run?: Run | undefined;
  route: RouteDecision | undefined;
  attempt: Attempt | undefined;
  /** Set: answered. A body may be whole or a stream whatever was asked: the edge converts. */
  get answer(): Answer | undefined;
  set answer(value: Answer | AnswerInit | undefined);
  /** Every finished upstream call of this exchange and its forks (not of background ones). */
  readonly calls: readonly ModelCall[];
  addCall(call: ModelCall): void;
  /** Of server-side tools, begun or over, of this request and all its forks; `tools` keeps them. */
  readonly toolCalls: ToolCallFact[];
  /** How many upstream calls have begun, ended or not: what `x-hermes-attempts` counts. */
  readonly callsBegun: number;
  beginCall(): void;
  readonly trace: Trace;
  /** Milliseconds (performance.now) at which the whole request must be over; Infinity without a deadline. */
  readonly deadline: number;
  readonly background: boolean;
  /** Client gone, deadline, superseded, shutdown. */
  readonly cancelled: HermesError | undefined;
  /** Called at most once; at once when already cancelled. Returns the way to take it back. */
  onCancel(listener: (reason: HermesError) => void): () => void;
  /** The same as a signal, made on first use: for fetch and friends. */
  readonly signal: AbortSignal;
  /** Reaches forks that are not detached. */
  cancel(reason: HermesError): void;
  /** A fresh try of the inner layers: own answer, attempt, request, cancellation; the rest is shared. */
  fork(over?: ForkOptions): Exchange;
  /** A comment line to the client, when the edge can write one; may be lost. */
  progress(text: string): void;
}
export interface ForkOptions {
  request?: ChatRequest;
  attempt?: Attempt;
  route?: RouteDecision;
  /** Lives on when the parent is cancelled: whoever made it decides. */
  detached?: boolean;
  /** Calls of its own, unseen by the parent's books: shadow. */
  background?: boolean;
}
