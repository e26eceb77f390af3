import type { ChatMessage, ChatRequest, FunctionTool } from '../wire/chat.ts';
import type { Config, ModelEntry, ToolSettings } from './config.ts';
import type {
  Answer,
  AnswerInit,
  Attempt,
  Caller,
  Credential,
  Exchange,
  ModelCall,
  Principal,
  Reservation,
  RouteDecision,
  SavedAnswer,
  UpstreamTarget,
} from './exchange.ts';
import type { Next } from './plugin.ts';
import type { RoutingRoom } from './routing.ts';
import type { ShadowRoom } from './shadow.ts';
import type { ChunkStream, Outcome } from './stream.ts';

/** What plugins get of the house: one interface a room. Each is made once by app.ts; parameters come with the exchange's own configuration. */
export interface Rooms {
  access: AccessRoom;
  idempotency: IdempotencyRoom;
  limits: LimitsRoom;
  cache: CacheRoom;
  guards: GuardsRoom;
  sessions: SessionsRoom;
  routing: RoutingRoom;
  schedule: ScheduleRoom;
  shadow: ShadowRoom;
  tools: ToolsRoom;
  upstream: UpstreamRoom;
  context: ContextRoom;
  accounting: AccountingRoom;
}

export interface AccessRoom {
  /** Throws `invalid_api_key` or `invalid_signature`. Constant time; a forged signature burns no nonce. */
  authenticate(
    config: Config,
    credential: Credential | undefined,
    request: {
      method: string;
      path: string;
      body: Uint8Array | undefined;
      /** There is no body that could be read. */
      bodiless?: boolean;
      /** For the audit of refusals. */
      remoteAddress?: string;
      requestId?: string;
    },
  ): Promise<Principal> | Principal;
  /** Who counts: checks that what the request asserts (service, project, user level, priority) is the principal's to assert; else 403. */
  toCaller(exchange: Pick<Exchange, 'ask' | 'request'>, principal: Principal): Caller;
  /** `*` patterns: `order.*`. */
  allows(patterns: readonly string[], name: string): boolean;
}

export interface IdempotencyRoom {
  /** Joins a running one, replays an ended one, or runs `next` in a detached fork that all joiners share. */
  once(exchange: Exchange, next: Next): Promise<Answer> | Answer;
}

export interface CacheRoom {
  /** The kept answer, the one that is on its way for an equal request, or what `next` gives. */
  serve(exchange: Exchange, next: Next): Promise<Answer> | Answer;
}

export interface GuardsRoom {
  /** Compiles a generation's guards ahead of its first request. */
  prepare(config: Config): void;
  /** Looks at the request, asks `next` with what may be seen of it, looks at the answer and puts back what was taken out. Throws what refuses. */
  guard(exchange: Exchange, next: Next): Promise<Answer>;
  /** A text without what must not leave by other ways: for embedding services. */
  veil(config: Config, text: string): string;
  /** What the guards look for in a request's text and find, in order: texts that differ in it are not about the same. */
  found(config: Config, text: string): string[];
  /** A captured content without what `trace.redact` names: for traces and reports. */
  redact(config: Config, content: unknown): unknown;
}

export interface LimitsRoom {
  /** All buckets or none; throws `rate_limit_exceeded` with its headers. Undefined: no rule concerns this exchange. */
  reserve(exchange: Exchange): Promise<Reservation | undefined> | Reservation | undefined;
  /** Response headers (`x-ratelimit-*`) of an admitted exchange. */
  headers(exchange: Exchange): Record<string, string>;
}

/** A begun turn: what `session` holds in its local state. */
export interface OpenTurn {
  /** Stored history, put before the request by `begin`. */
  history: readonly ChatMessage[];
  /** Its answer, where an earlier try of this request has stored the turn already: nothing is asked, and nothing is stored again. */
  stored?: AnswerInit | undefined;
  /** The answer's stream as it is; the stored answer is built of what is read from it. */
  watch(stream: ChunkStream): ChunkStream;
  /** Stores the turn (whole, or partial when the client left) or takes it back; then frees the session. */
  end(exchange: Exchange, outcome: Outcome): Promise<void>;
}
export interface SessionsRoom {
  /** Puts items of earlier answers where `exchange.request.messages` only names them (`ask.refers`). Throws `not_found` for one that is not kept for this caller. */
  resolve(exchange: Exchange): Promise<void>;
  /** Waits for the session (or throws `session_busy`), reads the history, finds the overlap, and puts it before `exchange.request.messages`. */
  begin(exchange: Exchange): Promise<OpenTurn>;
  /** What a turn begun now would be given: for dry runs. Takes no turn, changes nothing. */
  recall(config: Config, project: string, session: string): Promise<RecalledSession>;
  /** Really deletes, hot and cold. False: there is none. */
  forget(project: string, session: string): Promise<boolean>;
  /** An answer that is kept to be asked for again; undefined: there is none of this owner's. */
  findResponse(name: ResponseName): Promise<KeptResponse | undefined>;
  /** Really deletes it, with its turn of the session. False: there is none. */
  deleteResponse(name: ResponseName): Promise<boolean>;
  /** Deletes what is older than `session.retention_days`; gives how many. */
  sweep(config: Config): Promise<number>;
  /** Stores what still waits for the cold store. */
  close(): Promise<void>;
}
export interface ResponseName {
  project: string;
  session: string;
  /** The principal's id. */
  owner: string;
  id: string;
}
export interface KeptResponse {
  /** In its client's form. */
  view: unknown;
  /** What was new in its request. */
  input: readonly ChatMessage[];
}
export interface RecalledSession {
  system: readonly ChatMessage[];
  history: readonly ChatMessage[];
  /** Of the history, as counted when it was stored. */
  tokens: number;
}

export interface ScheduleRoom {
  /** The model after schedule and budgets; the same decision object when nothing changes. */
  apply(exchange: Exchange, decision: RouteDecision): RouteDecision | Promise<RouteDecision>;
}
export interface ToolView extends ToolSettings {
  description: string | undefined;
  parameters: Record<string, unknown> | undefined;
  side_effects: boolean;
  /** Of which MCP server; undefined: a tool of the configuration. */
  source: string | undefined;
}

export interface ToolsRoom {
  /** Connects this configuration's MCP servers in the background, and leaves those that only earlier ones named. */
  use(config: Config): void;
  close(): Promise<void>;
  /** Resolves the names on offer, adds their schemas to the request; false: no server-side tool is on offer. Waits where an MCP server has yet to be reached. */
  offer(exchange: Exchange): boolean | Promise<boolean>;
  /** Every tool that there is, those of MCP servers as far as they are known: without what only its operator may know. */
  list(config: Config): ToolView[];
  /** The tools of these names, or patterns, as a model is told of them. */
  functions(config: Config, names: readonly string[]): FunctionTool[];
  /** Runs the rounds: answers of `next`, server-side calls run, results fed back, until the model is done. */
  loop(exchange: Exchange, next: Next): Promise<Answer>;
  /** What would be on offer, and what was named but may not be used: for dry runs. Changes nothing. */
  names(subject: Pick<Exchange, 'config' | 'ask' | 'request' | 'caller' | 'principal' | 'route'>): { offered: string[]; unavailable: string[] };
}

/** The try whose stream was handed out: it hears how that ended. */
export interface OpenAttempt {
  end(outcome: Outcome): void;
}
export interface UpstreamRoom {
  /** Chooses, tries, retries, falls back; each try is `next(exchange.fork({ attempt }))`. `handed.open` is set when a stream is handed out. */
  failover(exchange: Exchange, next: Next, handed?: { open?: OpenAttempt | undefined }): Promise<Answer>;
  /** The innermost step: translates, calls, translates back, and makes the one ModelCall. */
  send(exchange: Exchange): Promise<Answer>;
  /** Asks what other instances know, for `states` that are shown; never rejects. */
  look(config: Config): Promise<void>;
  /** States for views and metrics. */
  states(config: Config): UpstreamState[];
  /** What the balancer would pick now, without picking. */
  preview(
    model: ModelEntry,
    session: string | undefined,
    project?: string,
  ): { upstream: string; weight: number; state: UpstreamState['state']; picked: boolean }[];
  /** Takes an upstream out of service, or back with a clean slate, at once. False: no such upstream. Resolves when other instances can know it. */
  drain(id: string, config?: Config): Promise<boolean>;
  reset(id: string, config?: Config): Promise<boolean>;
}
export interface UpstreamState {
  id: string;
  identity: string;
  provider: string;
  model_name: string;
  state: 'closed' | 'open' | 'half_open' | 'set_aside' | 'drained' | 'key_missing';
  consecutive_failures: number;
  /** ISO 8601; when an open breaker lets its probe through, or a 429 ends. */
  until?: string;
  models: string[];
  /** By model, as far as models list it: what share of its traffic it is meant to get. */
  weights: { model: string; weight: number }[];
  /** What its breaker did while this process ran, newest first. */
  changes: StateChange[];
}
export interface StateChange {
  /** ISO 8601. */
  at: string;
  from: UpstreamState['state'];
  to: UpstreamState['state'];
  consecutive_failures: number;
}

export interface ContextRoom {
  /** A copy of the request fitted to the target, or the same object when it fits as it is. Throws `context_length_exceeded` with the numbers. */
  fit(exchange: Exchange, request: ChatRequest, target: UpstreamTarget): Promise<FitResult> | FitResult;
  /** Tokens of one message by the target's encoding (estimate for other vendors). */
  countMessage(message: ChatMessage, modelName: string): Promise<number> | number;
  /** Of a message that is about to be stored, in the encoding that stored counts are in, whichever model answered. */
  countStored(message: ChatMessage): Promise<number>;
  /** A cheap upper bound: UTF-8 bytes. */
  countText(text: string, modelName: string): Promise<number> | number;
  /**
   * `session.summarize_dropped`: lets `ask` (one call of that model) sum up what trimming left out; later fits of the session put the
   * summary in its place. In the background: never rejects, nobody waits.
   */
  recap(exchange: Exchange, left: readonly ChatMessage[], ask: (request: ChatRequest, model: ModelEntry) => Promise<Answer>): Promise<void>;
}
export interface FitResult {
  request: ChatRequest;
  /** What went, oldest first. */
  left?: readonly ChatMessage[];
  budget: number;
  kept: number;
  dropped: number;
  /** By what is known when it is asked for: nothing is counted. */
  tokens(): number;
}

export interface AccountingRoom {
  /** Prices the call (sets `costNanoUsd`) and tells the listeners. Synchronous. */
  record(call: ModelCall, config: Config): void;
  /** `config`: of the exchange that made the call. */
  onCall(listener: (call: ModelCall, config: Config) => void): void;
  /** An answer of the cache: tells its listeners. */
  saved(answer: SavedAnswer, config: Config): void;
  onSaved(listener: (answer: SavedAnswer, config: Config) => void): void;
  price(config: Config, call: ModelCall): number | undefined;
  /** Before a call: throws `model_unpriced` where `cost.unpriced` refuses what has no price. */
  checkPriced(config: Config, attempt: Pick<Attempt, 'model' | 'upstream'>): void;
}
