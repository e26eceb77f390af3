import type { Config } from '../contracts/config.ts';
import type { HermesError } from '../contracts/errors.ts';
import type {
  Answer,
  AnswerInit,
  Ask,
  Attempt,
  Caller,
  Exchange,
  ForkOptions,
  Inbound,
  ModelCall,
  Principal,
  Reservation,
  RouteDecision,
  Run,
  SessionTurn,
  ToolCallFact,
  Trace,
  Wants,
} from '../contracts/exchange.ts';
import type { ChatMessage, ChatRequest } from '../wire/chat.ts';
import type { Rostered } from '../wire/roster.ts';
import { toAnswer } from './answer.ts';

export interface ExchangeInit {
  id: string;
  config: Config;
  headers: Readonly<Record<string, string>>;
  ask: Ask;
  wants: Wants;
  inbound: Inbound;
  trace: Trace;
  deadline: number;
  progress: (text: string) => void;
}

/** The one object that travels. A fork shares what was asked and who asks; it has its own answer, attempt, request and cancellation. */
export class PipelineExchange implements Exchange, Rostered {
  /** Among the requests in flight. */
  seat = -1;
  readonly id: string;
  readonly config: Config;
  readonly headers: Readonly<Record<string, string>>;
  readonly ask: Ask;
  readonly wants: Wants;
  readonly inbound: Inbound;
  readonly trace: Trace;
  readonly deadline: number;
  readonly background: boolean;
  request: ChatRequest;
  principal: Principal | undefined;
  caller: Caller | undefined;
  session: SessionTurn | undefined;
  route: RouteDecision | undefined;
  attempt: Attempt | undefined;
  turnMessages: ChatMessage[] | undefined;
  run: Run | undefined;
  reservation: Reservation | undefined;
  readonly #init: ExchangeInit;
  readonly #calls: ModelCall[];
  readonly toolCalls: ToolCallFact[];
  readonly #begun: { calls: number };
  #answer: Answer | undefined;
  #cancelled: HermesError | undefined;
  #listeners: ((reason: HermesError) => void)[] | undefined;
  #controller: AbortController | undefined;

  constructor(init: ExchangeInit, parent?: PipelineExchange, over: ForkOptions = {}) {
    this.#init = init;
    this.id = init.id;
    this.config = init.config;
    this.headers = init.headers;
    this.ask = init.ask;
    this.wants = init.wants;
    this.inbound = init.inbound;
    this.deadline = init.deadline;
    this.background = over.background ?? parent?.background ?? false;
    // What runs in the background is no part of the request's own time.
    this.trace = this.background ? withoutSpans(init.trace) : init.trace;
    this.request = over.request ?? parent?.request ?? init.inbound.request;
    this.principal = parent?.principal;
    this.caller = parent?.caller;
    this.session = parent?.session;
    this.route = over.route ?? parent?.route;
    this.attempt = over.attempt ?? parent?.attempt;
    this.turnMessages = parent?.turnMessages;
    this.reservation = over.background ? undefined : parent?.reservation;
    this.run = over.background ? undefined : parent?.run;
    this.#calls = parent && !over.background ? parent.#calls : [];
    this.toolCalls = parent && !over.background ? parent.toolCalls : [];
    this.#begun = parent && !over.background ? parent.#begun : { calls: 0 };
    if (parent && !over.detached) parent.onCancel((reason) => this.cancel(reason));
  }

  get answer(): Answer | undefined {
    return this.#answer;
  }
  set answer(value: Answer | AnswerInit | undefined) {
    this.#answer = value === undefined ? undefined : toAnswer(value);
  }
  get calls(): readonly ModelCall[] {
    return this.#calls;
  }
  addCall(call: ModelCall): void {
    this.#calls.push(call);
  }
  get callsBegun(): number {
    return this.#begun.calls;
  }
  beginCall(): void {
    this.#begun.calls++;
  }
  get cancelled(): HermesError | undefined {
    return this.#cancelled;
  }

  onCancel(listener: (reason: HermesError) => void): () => void {
    if (this.#cancelled) {
      listener(this.#cancelled);
      return () => undefined;
    }
    this.#listeners ??= [];
    const listeners = this.#listeners;
    listeners.push(listener);
    return () => {
      const at = listeners.indexOf(listener);
      if (at >= 0) listeners.splice(at, 1);
    };
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = new AbortController();
      this.#controller = controller;
      this.onCancel((reason) => controller.abort(reason));
    }
    return this.#controller.signal;
  }

  cancel(reason: HermesError): void {
    if (this.#cancelled) return;
    this.#cancelled = reason;
    const listeners = this.#listeners ?? [];
    this.#listeners = undefined;
    for (const listener of listeners) listener(reason);
  }

  fork(over: ForkOptions = {}): Exchange {
    return new PipelineExchange(this.#init, this, over);
  }

  progress(text: string): void {
    if (!this.background) this.#init.progress(text);
  }
}

const nothing = (): void => undefined;
function withoutSpans({ id, traceId, startedAt }: Trace): Trace {
  return { id, traceId, startedAt, spans: [], record: nothing, span: () => nothing };
}
