import { setTimeout as pause } from 'node:timers/promises';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Exchange, RunLog } from '../contracts/exchange.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { type Dedupe, toActionKey } from './dedupe.ts';
import type { HttpCall } from './http-call.ts';
import { callLocally } from './local-call.ts';
import type { RegisteredTool } from './registered-tool.ts';
import { failure, type ToolResult, toResult, unknownOutcome } from './result.ts';
import { runTries } from './tries.ts';

const LOOK_MS = 100;

export interface CallDeps {
  cold: ColdStore;
  log: Log;
  environment: Environment;
  http: HttpCall;
  dedupe: Dedupe;
}
/** A call of a tool that may be run, with params that fit. */
export interface ReadyCall {
  tool: RegisteredTool;
  requestId: string;
  params: Record<string, unknown>;
}

/** Runs one call: once, where it changes something. */
export class CallRunner {
  readonly #deps: CallDeps;

  constructor(deps: CallDeps) {
    this.#deps = deps;
  }

  /** `log`: absent where nothing on offer has side effects, or where nobody keeps the run. */
  async run(exchange: Exchange, call: ReadyCall, log: RunLog | undefined): Promise<ToolResult> {
    if (!call.tool.side_effects) return this.#keep(log, await this.#send(exchange, call, call.tool.retries));
    let claimed = true;
    try {
      if (log) claimed = await log.write(`c.${call.requestId}`, String(this.#deps.environment.now()));
      return await this.#once(exchange, call, log, claimed);
    } catch (err) {
      // Without a claim that survives a crash no action begins.
      this.#deps.log.error({ err, tool: call.tool.id, tool_request_id: call.requestId }, 'a tool with side effects was not called: the store is away');
      return claimed ? failure('error', 'The tool cannot be used now; nothing was done.', call.requestId, { unsent: true }) : unknownOutcome(call.requestId);
    }
  }

  async #once(exchange: Exchange, call: ReadyCall, log: RunLog | undefined, claimed: boolean): Promise<ToolResult> {
    const { tool, requestId } = call;
    if (log && !claimed) {
      const known = await this.#earlier(call, log);
      if (known) return known;
      // Begun and never answered: further tries under the same id are all that the tool allows.
      if (tool.retries === 0) return this.#keep(log, unknownOutcome(requestId));
    }
    const retries = claimed ? tool.retries : tool.retries - 1;
    const action = toActionKey(tool, exchange, call.params);
    const send = (): Promise<ToolResult> => this.#send(exchange, call, retries);
    return this.#keep(log, await (action === undefined ? send() : this.#deps.dedupe.once(tool, action, requestId, send)), requestId);
  }

  /** What an earlier try of this request got; waits for one on another instance that may still be at it. */
  async #earlier({ tool, requestId }: ReadyCall, log: RunLog): Promise<ToolResult | undefined> {
    const claimedAt = Number(await log.readStep(`c.${requestId}`));
    const until = this.#deps.cold.name === 'postgres' ? claimedAt + tool.timeout_ms * (tool.retries + 1) : 0;
    for (;;) {
      const text = await log.readStep(`r.${requestId}`);
      if (text !== undefined) return toResult(text);
      if (this.#deps.environment.now() >= until) return undefined;
      await pause(LOOK_MS);
    }
  }

  #send(exchange: Exchange, { tool, requestId, params }: ReadyCall, retries: number): Promise<ToolResult> {
    const { config, ask, caller } = exchange;
    const common = {
      requestId,
      sessionId: exchange.session?.id ?? ask.sessionId ?? null,
      user: caller?.user ?? ask.user ?? null,
      params,
      signal: tool.side_effects ? undefined : exchange.signal,
    };
    const { environment, http } = this.#deps;
    if ('server' in tool) return runTries({ tool, ...common }, retries, environment, () => tool.server.call({ tool, ...common }));
    if ('run' in tool) return runTries({ tool, ...common }, retries, environment, () => callLocally({ tool, ...common }));
    const secret = tool.secret_env === undefined ? undefined : config.secrets.get(tool.secret_env);
    if (tool.secret_env !== undefined && secret === undefined) {
      this.#deps.log.error({ tool: tool.id, variable: tool.secret_env }, 'a tool was not called: its secret is not set');
      return Promise.resolve(failure('error', 'The tool is not set up; nothing was done.', requestId, { unsent: true }));
    }
    return runTries({ tool, ...common }, retries, environment, () => http.once({ tool, ...common }, secret));
  }

  async #keep(log: RunLog | undefined, result: ToolResult, requestId: string = result.requestId): Promise<ToolResult> {
    try {
      await log?.write(`r.${requestId}`, JSON.stringify(result));
    } catch (err) {
      this.#deps.log.error({ err, tool_request_id: requestId }, "a tool's result could not be stored");
    }
    return result;
  }
}
