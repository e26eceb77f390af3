import type { ChatMessage, ChatRequest } from '../wire/chat.ts';
import type { Config, ModelEntry } from './config.ts';
import type { Answer, Caller, Credential, Exchange, ModelCall, Principal, RouteDecision, UpstreamTarget } from './exchange.ts';
import type { Next } from './plugin.ts';
import type { Outcome } from './stream.ts';

/** What plugins get of the house: one interface a room. Each is made once by app.ts; parameters come with the exchange's own configuration. */
export interface Rooms {
  access: AccessRoom;
  idempotency: IdempotencyRoom;
  limits: LimitsRoom;
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
    request: { method: string; path: string; body: Uint8Array | undefined },
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

export interface Reservation {
  /** Settles what was reserved against what was used. Once; later calls are no-ops. */
  settle(calls: readonly ModelCall[]): void;
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
  /** Stores the turn (whole, or partial when the client left) or takes it back; then frees the session. */
  end(exchange: Exchange, outcome: Outcome): Promise<void>;
}
export interface SessionsRoom {
  /** Waits for the session (or throws `session_busy`), reads the history, finds the overlap, and puts it before `exchange.request.messages`. */
  begin(exchange: Exchange): Promise<OpenTurn>;
}

export interface RouteEngine {
  /** The decision for this exchange; synchronous when no rule must wait. */
  decide(exchange: Exchange): RouteDecision | Promise<RouteDecision>;
}
export interface RoutingRoom {
  /** Compiles a generation's rules; throws a plain Error naming the rule. */
  compile(config: Config): RouteEngine;
}

export interface ScheduleRoom {
  /** The model after schedule and budgets; the same decision object when nothing changes. */
  apply(exchange: Exchange, decision: RouteDecision): RouteDecision | Promise<RouteDecision>;
}
export interface ShadowRoom {
  /** Samples; whatever it does happens in the background and never touches the exchange. */
  observe(exchange: Exchange, next: Next): void;
}

export interface ToolsRoom {
  /** Resolves the names on offer, adds their schemas to the request; undefined: no server-side tool is on offer. */
  offer(exchange: Exchange): boolean;
  /** Runs the rounds: answers of `next`, server-side calls run, results fed back, until the model is done. */
  loop(exchange: Exchange, next: Next): Promise<Answer>;
}

export interface UpstreamRoom {
  /** Chooses, tries, retries, falls back; each try is `next(exchange.fork({ attempt }))`. */
  failover(exchange: Exchange, next: Next): Promise<Answer>;
  /** The innermost step: translates, calls, translates back, and makes the one ModelCall. */
  send(exchange: Exchange): Promise<Answer>;
  /** States for views and metrics. */
  states(config: Config): UpstreamState[];
  /** What the balancer would pick now, without picking. */
  preview(model: ModelEntry, session: string | undefined): { upstream: string; weight: number; state: UpstreamState['state']; picked: boolean }[];
  drain(id: string): boolean;
  reset(id: string): boolean;
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
}

export interface ContextRoom {
  /** A copy of the request fitted to the target, or the same object when it fits as it is. Throws `context_length_exceeded` with the numbers. */
  fit(exchange: Exchange, request: ChatRequest, target: UpstreamTarget): Promise<FitResult> | FitResult;
  /** Tokens of one message by the target's encoding (estimate for other vendors). */
  countMessage(message: ChatMessage, modelName: string): Promise<number> | number;
  /** A cheap upper bound: UTF-8 bytes. */
  countText(text: string, modelName: string): Promise<number> | number;
}
export interface FitResult {
  request: ChatRequest;
  budget: number;
  kept: number;
  dropped: number;
  tokens: number;
}

export interface AccountingRoom {
  /** Prices the call (sets `costNanoUsd`) and tells the listeners. Synchronous. */
  record(call: ModelCall, config: Config): void;
  onCall(listener: (call: ModelCall) => void): void;
  price(config: Config, call: ModelCall): number | undefined;
}
