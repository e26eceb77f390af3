import type { ToolSettings } from './config.ts';

/** Who a call of a tool is for. */
export interface LocalCall {
  /** The same however often the call is repeated: the key of an action that must happen once. */
  requestId: string;
  sessionId: string | null;
  user: string | null;
  /** Aborted at the tool's `timeout_ms`; where the tool only reads, also when the client has left. */
  signal: AbortSignal;
}
/**
 * Runs one call. `params` fit the tool's schema; integers beyond 2^53 are strings of their digits. What it resolves to is the
 * result: text as it is, anything else as JSON (4 MB at most). What it throws goes to the model as the tool's failure, by its message.
 */
export type RunLocally = (params: Record<string, unknown>, call: LocalCall) => unknown;

/** A tool that a plugin added: it runs in hermes' own process. */
export interface LocalTool extends ToolSettings {
  description?: string | undefined;
  /** JSON Schema; calls are checked against it. */
  parameters?: Record<string, unknown> | undefined;
  side_effects: boolean;
  run: RunLocally;
}
/** What `addTool` takes: an entry of `tools:` with a function in the place of `endpoint`. The defaults are that block's; `side_effects` is true. */
export type LocalToolInit = Pick<LocalTool, 'id' | 'run'> & {
  [Key in Exclude<keyof LocalTool, 'id' | 'run' | 'allow' | 'summary' | 'dedupe'>]?: LocalTool[Key] | undefined;
} & {
  allow?: Partial<LocalTool['allow']> | undefined;
  summary?: Partial<NonNullable<LocalTool['summary']>> | undefined;
  dedupe?: { by: string[]; window_seconds?: number } | undefined;
};
