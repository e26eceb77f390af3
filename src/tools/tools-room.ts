import type { Dispatcher } from 'undici';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Next } from '../contracts/plugin.ts';
import type { ToolsRoom, ToolView } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import type { FunctionTool } from '../wire/chat.ts';
import { Dedupe } from './dedupe.ts';
import { HttpCall } from './http-call.ts';
import { MixedCalls } from './mixed-calls.ts';
import { type Allows, namesOf, type Offer, type OfferSubject, toFunctionTool, toOffer } from './offer.ts';
import { ParamsCheck } from './params.ts';
import { toToolView } from './registered-tool.ts';
import { ToolRegistry } from './registry.ts';
import { CallRunner } from './run-call.ts';
import { type Ask, runStreamedRounds } from './streamed-rounds.ts';
import { ToolTurn, type TurnDeps } from './turn.ts';
import { runWholeRounds, toLoggedBody } from './whole-rounds.ts';

export interface ToolsDeps {
  hot: HotStore;
  cold: ColdStore;
  log: Log;
  metrics: Metrics;
  environment: Environment;
  /** Patterns with `*`, as access reads them. */
  allows: Allows;
  /** For the calls of tools; undici's own by default. */
  dispatcher?: Dispatcher | undefined;
}

export function createToolsRoom(deps: ToolsDeps): ToolsRoom {
  return new Tools(deps);
}

class Tools implements ToolsRoom {
  readonly #deps: ToolsDeps;
  readonly #turnDeps: TurnDeps;
  readonly #registry: ToolRegistry;
  /** Between `offer` and `loop`. */
  readonly #offers = new WeakMap<Exchange, Offer>();

  constructor(deps: ToolsDeps) {
    const { cold, log, environment, metrics } = deps;
    const calls = metrics.counter('hermes_tool_calls_total', 'Calls of server-side tools by the model.', ['tool', 'status']);
    const loops = metrics.counter('hermes_tool_loops_total', 'Turns that were ended because their tool calls went round in a circle.', ['tool']);
    this.#deps = deps;
    this.#registry = new ToolRegistry(log, deps.dispatcher);
    this.#turnDeps = {
      runner: new CallRunner({ cold, log, environment, http: new HttpCall(environment, deps.dispatcher), dedupe: new Dedupe(cold, environment, log) }),
      params: new ParamsCheck(),
      mixed: new MixedCalls(deps),
      called: (tool, status) => calls.inc({ tool, status }),
      looped: (tool) => loops.inc({ tool }),
    };
  }

  use(config: Config): void {
    this.#registry.use(config);
  }

  close(): Promise<void> {
    return this.#registry.close();
  }

  offer(exchange: Exchange): boolean | Promise<boolean> {
    // A copy in the background must not touch a tool.
    if (exchange.background) return false;
    const awaited = this.#registry.awaited(exchange.config, namesOf(exchange));
    return awaited ? awaited.then(() => this.#offer(exchange)) : this.#offer(exchange);
  }

  #offer(exchange: Exchange): boolean {
    const offer = this.#toOffer(exchange);
    if (offer === undefined) return false;
    this.#offers.set(exchange, offer);
    if (offer.tools.size > 0)
      exchange.request = { ...exchange.request, tools: [...(exchange.request.tools ?? []), ...[...offer.tools.values()].map(toFunctionTool)] };
    return true;
  }

  #toOffer(subject: OfferSubject): Offer | undefined {
    return toOffer(subject, this.#registry.tools(subject.config), this.#deps.allows);
  }

  list(config: Config): ToolView[] {
    return [...this.#registry.tools(config).values()].map(toToolView);
  }

  functions(config: Config, names: readonly string[]): FunctionTool[] {
    return [...this.#registry.tools(config).values()].filter(({ id }) => this.#deps.allows(names, id)).map(toFunctionTool);
  }

  names(subject: OfferSubject): { offered: string[]; unavailable: string[] } {
    const offer = this.#toOffer(subject);
    return { offered: [...(offer?.tools.keys() ?? [])], unavailable: offer?.unavailable ?? [] };
  }

  async loop(exchange: Exchange, next: Next): Promise<Answer> {
    const offer = this.#offers.get(exchange);
    if (offer === undefined) return next();
    if (offer.sideEffects) await exchange.run?.offer();
    const turn = new ToolTurn(exchange, offer, this.#turnDeps);
    let round: Exchange | undefined;
    const ask: Ask = {
      model: () => {
        round = exchange.fork({ request: turn.request });
        return next(round);
      },
      cancel: (reason) => round?.cancel(reason),
    };
    const resumed = await turn.resume();
    if (resumed.over) {
      const body = toLoggedBody(`chatcmpl-${turn.id}`, Math.floor(this.#deps.environment.now() / 1000), resumed);
      exchange.answer = { body, facts: { toolCalls: turn.facts } };
    } else {
      const first = await ask.model();
      const most = exchange.config.server.max_event_bytes;
      exchange.answer = first.stream ? runStreamedRounds(turn, first, ask, most) : await runWholeRounds(turn, first, ask, most);
    }
    const answer = exchange.answer as Answer;
    if (offer.unavailable.length > 0) answer.facts.unavailableTools = offer.unavailable;
    return answer;
  }
}
