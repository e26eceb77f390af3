import { setTimeout as pause } from 'node:timers/promises';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { canonicalJson, sha256 } from '../wire/canonical.ts';
import { isRecord } from '../wire/json.ts';
import type { RegisteredTool } from './registered-tool.ts';
import { type ToolResult, toReplay, toResult, unknownOutcome } from './result.ts';

const LOOK_MS = 100;
/** Beyond the owner's own time-outs: its result is written after they have passed. */
const GRACE_MS = 1000;

/**
 * A tool's `dedupe`: the same action by its own key fields within the window is one, whoever asks. The first to claim it, in
 * whatever process, carries it out; the others get its result.
 */
export class Dedupe {
  readonly #cold: ColdStore;
  readonly #environment: Environment;
  readonly #log: Log;
  /** Under way in this process. */
  readonly #running = new Map<string, Promise<ToolResult>>();

  constructor(cold: ColdStore, environment: Environment, log: Log) {
    this.#cold = cold;
    this.#log = log;
    this.#environment = environment;
  }

  /** Runs `call`, or gives what the same action came to. Rejects when the store is away: then nothing was called. */
  async once(tool: RegisteredTool, key: string, requestId: string, call: () => Promise<ToolResult>): Promise<ToolResult> {
    for (;;) {
      const running = this.#running.get(key);
      if (running) {
        const result = await running;
        if (result.requestId !== requestId && mayTryAgain(result)) continue;
        return replayed(result);
      }
      const mine = this.#claim(tool, key, requestId, call);
      this.#running.set(key, mine);
      try {
        return await mine;
      } finally {
        this.#running.delete(key);
      }
    }
  }

  async #claim(tool: RegisteredTool, key: string, requestId: string, call: () => Promise<ToolResult>): Promise<ToolResult> {
    const expiresAt = this.#environment.now() + (tool.dedupe?.window_seconds ?? 0) * 1000;
    const patience = performance.now() + tool.timeout_ms * (tool.retries + 1) + GRACE_MS;
    for (;;) {
      if (await this.#cold.setValue(key, JSON.stringify({ requestId }), expiresAt, true)) break;
      const found = read(await this.#cold.getValue(key));
      if (found === undefined) continue;
      if (found.requestId === requestId && !found.result) break;
      if (found.result) return replayed(found.result);
      if (performance.now() > patience) return unknownOutcome(found.requestId);
      await pause(LOOK_MS);
    }
    const result = await call();
    try {
      if (mayTryAgain(result)) await this.#cold.deleteValue(key);
      else await this.#cold.setValue(key, JSON.stringify({ requestId, result }), expiresAt);
    } catch (err) {
      // The claim stands: whoever asks for the action in its window is told that its outcome is unknown.
      this.#log.error({ err, tool: tool.id, tool_request_id: requestId }, "a tool's result could not be stored for repeats");
    }
    return result;
  }
}

/** Nothing has happened, for certain: the action may be asked for again. */
function mayTryAgain(result: ToolResult): boolean {
  return result.unsent === true || result.refused === true;
}

function replayed(result: ToolResult): ToolResult {
  return toReplay(JSON.stringify(result)) ?? result;
}

function read(text: string | undefined): { requestId: string; result: ToolResult | undefined } | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || typeof value.requestId !== 'string') return undefined;
  return { requestId: value.requestId, result: value.result === undefined ? undefined : toResult(JSON.stringify(value.result)) };
}

/** The action's name; undefined: this tool has no such rule. A field that is not there counts as null. */
export function toActionKey(tool: RegisteredTool, exchange: Exchange, params: Record<string, unknown>): string | undefined {
  if (tool.dedupe === undefined) return undefined;
  const { caller, ask } = exchange;
  const fields: Record<string, unknown> = {
    user: caller?.user ?? ask.user,
    session_id: ask.sessionId,
    service: caller?.service,
    project: caller?.project,
    params,
  };
  const values = tool.dedupe.by.map(
    (path) => path.split('.').reduce<unknown>((value, name) => (isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined), fields) ?? null,
  );
  return `action:${sha256(canonicalJson([tool.id, tool.dedupe.by, values]))}`;
}
