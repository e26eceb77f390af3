import { HermesError } from '../contracts/errors.ts';
import type { Exchange, RunLog, ToolCallFact } from '../contracts/exchange.ts';
import { idReused } from '../contracts/id-reused.ts';
import { canonicalJson } from '../wire/canonical.ts';
import type { ChatMessage, ChatRequest, ToolCall } from '../wire/chat.ts';
import { isRecord, parseJson, stringifyJson } from '../wire/json.ts';
import { madeBy, withMaker, withStoredMaker } from '../wire/maker.ts';
import { toLawful, withIds } from './lawful.ts';
import { LoopGuard } from './loop-guard.ts';
import { type MixedCalls, toQuestion } from './mixed-calls.ts';
import type { Offer } from './offer.ts';
import type { ParamsCheck } from './params.ts';
import { toToolRequestId } from './request-id.ts';
import { failure, type ToolResult, toReplay, unavailable } from './result.ts';
import type { CallRunner, ReadyCall } from './run-call.ts';

export interface TurnDeps {
  runner: CallRunner;
  params: ParamsCheck;
  mixed: MixedCalls;
  called: (tool: string, status: string) => void;
  /** A turn was ended because it went round in a circle with this tool. */
  looped: (tool: string) => void;
}
/**
 * Not over: its calls have run, ask the model again. Over: the message that ended the turn, and those of its calls that are the
 * client's; `note` is text of hermes' own where the model had nothing to say.
 */
export type Taken = { over: false } | { over: true; message: ChatMessage; calls: ToolCall[]; note?: string };

/** A call as the model made it, ready to run or already answered. */
type Planned = { call: ToolCall; ready?: ReadyCall; answered?: ToolResult };

/** One request's way through its rounds: the conversation as it grows, what was run, what is left. */
export class ToolTurn {
  readonly #exchange: Exchange;
  readonly #offer: Offer;
  readonly #deps: TurnDeps;
  readonly #log: RunLog | undefined;
  readonly #occurrences = new Map<string, number>();
  readonly #loop: LoopGuard | undefined;
  #messages: ChatMessage[];
  #logged: Map<string, string> = new Map();
  #rounds = 0;
  readonly facts: ToolCallFact[] = [];
  /** Texts of the rounds so far: in a stream the client sees them before the last one's. */
  readonly said: string[] = [];
  #waitedMs = 0;

  constructor(exchange: Exchange, offer: Offer, deps: TurnDeps) {
    this.#exchange = exchange;
    this.#offer = offer;
    this.#deps = deps;
    this.#messages = exchange.request.messages;
    this.#log = offer.sideEffects ? exchange.run?.log : undefined;
    const guard = exchange.config.tool_loop_guard;
    this.#loop = guard && new LoopGuard(guard.repeats);
  }

  get id(): string {
    return this.#exchange.run?.id ?? this.#exchange.id;
  }

  /** Goes on where an earlier try of this request was broken off. Gives what that settled: calls that are the client's end the turn. */
  async resume(): Promise<Taken> {
    this.#messages = await this.#deps.mixed.rejoin(this.#exchange, this.#messages);
    if (this.#log === undefined || !this.#exchange.run?.resumable) return { over: false };
    // A store that is away also refuses the claims: nothing can be done twice for want of this log.
    this.#logged = await this.#log.read().catch(() => new Map<string, string>());
    for (;;) {
      const step = this.#logged.get(`m${this.#rounds}`);
      if (step === undefined) return { over: false };
      const taken = await this.#runRound(this.#toLogged(step));
      if (taken.over) return taken;
    }
  }

  /** Takes the model's message: runs the server's calls in it. `maker`: the vendor that answered this round, whose reasoning it is. */
  async take(answered: ChatMessage, maker: string | undefined): Promise<Taken> {
    const message = madeBy(answered, maker);
    const calls = withIds(
      (message.tool_calls ?? []).filter((call) => call?.function?.name),
      this.#rounds,
    );
    const own = calls.filter((call) => this.isClients(call.function.name));
    if (own.length === calls.length || this.#spent) {
      const note = this.#loop?.tool !== undefined && own.length === 0 && !message.content ? this.#loop.explanation : undefined;
      return note === undefined ? { over: true, message, calls: own } : { over: true, message: { ...message, content: note }, calls: own, note };
    }
    let whole: ChatMessage = { ...message, tool_calls: calls };
    if (this.#log) {
      const entry = stringifyJson({ body: this.#exchange.run?.fingerprint, message: withStoredMaker(whole) });
      const isNew = await this.#log.write(`m${this.#rounds}`, entry).catch(() => true);
      // Another try came first, maybe on another instance: its calls are the ones that run.
      if (!isNew) whole = this.#toLogged((await this.#log.readStep(`m${this.#rounds}`)) ?? entry);
    }
    return this.#runRound(whole);
  }

  /** What the model is asked next. */
  get request(): ChatRequest {
    const { request } = this.#exchange;
    const messages = this.#messages;
    if (this.#rounds === 0) return messages === request.messages ? request : { ...request, messages };
    if (this.#spent) {
      const { tools: _tools, tool_choice: _choice, parallel_tool_calls: _parallel, ...rest } = request;
      return { ...rest, messages: this.#loop?.tool === undefined ? messages : [...messages, { role: 'user', content: this.#loop.advice }] };
    }
    // A choice that forces a call would never let the model answer.
    const { tool_choice, ...rest } = request;
    return { ...rest, messages, ...(tool_choice === 'none' || tool_choice === 'auto' ? { tool_choice } : {}) };
  }

  /** Milliseconds that tools have taken since this was last asked. */
  takeWaited(): number {
    const waited = this.#waitedMs;
    this.#waitedMs = 0;
    return waited;
  }

  isClients(name: string): boolean {
    return this.#offer.client.has(name);
  }

  /** All rounds are used up, or lead nowhere: the model answers without tools. */
  get #spent(): boolean {
    return this.#rounds >= this.#exchange.config.tools_max_rounds || this.#loop?.tool !== undefined;
  }

  async #runRound(message: ChatMessage): Promise<Taken> {
    const calls = message.tool_calls ?? [];
    const mine = calls.filter((call) => !this.isClients(call.function.name)).map((call) => this.#plan(call));
    const began = performance.now();
    if (mine.some(({ ready }) => ready?.tool.side_effects) && this.#exchange.run && !(await this.#exchange.run.begin()))
      throw new HermesError('client_closed', 'The client closed the connection before the tool was called.');
    const results = await Promise.all(mine.map((planned) => this.#run(planned)));
    this.#waitedMs += performance.now() - began;
    const answers = results.map((result, at): ChatMessage => ({ role: 'tool', tool_call_id: mine[at]?.call.id ?? '', content: result.content }));
    const own = calls.filter((call) => this.isClients(call.function.name));
    if (own.length > 0) {
      await this.#deps.mixed.keep(this.#exchange, toQuestion(this.#messages), own, { message: toLawful(message), results: answers });
      return { over: true, message, calls: own };
    }
    if (typeof message.content === 'string' && message.content !== '') this.said.push(message.content);
    this.#messages = [...this.#messages, toLawful(message), ...answers];
    this.#exchange.turnMessages ??= [];
    this.#exchange.turnMessages.push(toLawful(message), ...answers);
    this.#rounds++;
    this.#watch(mine, results);
    return { over: false };
  }

  #watch(mine: readonly Planned[], results: readonly ToolResult[]): void {
    if (this.#loop === undefined || this.#loop.tool !== undefined) return;
    const tool = this.#loop.saw(
      results.map((result, at) => ({ name: mine[at]?.call.function.name ?? '', arguments: mine[at]?.call.function.arguments ?? '', result })),
    );
    if (tool === undefined) return;
    this.#exchange.trace.span('loop guard', { tool: tool.slice(0, 64) })();
    this.#deps.looped(this.#offer.tools.has(tool) ? tool : 'other');
  }

  async #run({ call, ready, answered }: Planned): Promise<ToolResult> {
    const name = call.function.name;
    const end = this.#exchange.trace.span(`tool ${ready?.tool.id ?? name.slice(0, 64)}`, ready ? { request_id: ready.requestId } : {});
    // From its beginning: a request that is over before its tools are still tells of them.
    const fact: ToolCallFact = { tool: name, request_id: ready?.requestId ?? '', status: 'aborted', ms: 0, tries: 0 };
    this.facts.push(fact);
    this.#exchange.toolCalls.push(fact);
    if (ready) this.#exchange.progress(`tool ${ready.tool.id}`);
    try {
      const result = answered ?? (ready ? await this.#deps.runner.run(this.#exchange, ready, this.#log) : unavailable(name));
      const { requestId, status, ms, tries } = result;
      Object.assign(fact, { request_id: requestId, status, ms, tries });
      return result;
    } finally {
      end({ status: fact.status, tries: fact.tries ?? 0 });
      if (ready) this.#exchange.progress(`tool ${ready.tool.id} ${fact.status}`);
      this.#deps.called(this.#offer.tools.has(name) ? name : 'other', fact.status);
    }
  }

  #plan(call: ToolCall): Planned {
    const { name, arguments: text } = call.function;
    const tool = this.#offer.tools.get(name);
    if (tool === undefined) return { call, answered: unavailable(name) };
    const { value: params, problem } = this.#deps.params.check(tool, text);
    if (params === undefined) return { call, answered: failure('invalid', problem, '') };
    const canonical = canonicalJson(params);
    const same = JSON.stringify([name, canonical]);
    const occurrence = this.#occurrences.get(same) ?? 0;
    this.#occurrences.set(same, occurrence + 1);
    const { run, id } = this.#exchange;
    const owner = run?.owner ?? this.#exchange.principal?.id ?? '';
    const requestId = toToolRequestId(owner, run?.id ?? id, name, canonical, occurrence);
    const stored = this.#logged.get(`r.${requestId}`);
    const result = stored === undefined ? undefined : toReplay(stored);
    return { call, ready: { tool, requestId, params }, ...(result ? { answered: result } : {}) };
  }

  #toLogged(step: string): ChatMessage {
    const entry = parseJson(step);
    if (!isRecord(entry) || !isRecord(entry.message)) throw new HermesError('internal_error', 'The log of this request cannot be read; take a new request id.');
    if (entry.body !== this.#exchange.run?.fingerprint) throw idReused();
    return withMaker(entry.message as ChatMessage);
  }
}
