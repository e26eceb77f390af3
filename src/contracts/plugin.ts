import type { Config } from './config.ts';
import type { Answer, Exchange } from './exchange.ts';
import type { LocalToolInit } from './local-tool.ts';
import type { Matcher } from './matcher.ts';
import type { Provider } from './provider.ts';
import type { Rooms } from './rooms.ts';
import type { Chunk, Outcome } from './stream.ts';
import type { Log, Metrics } from './telemetry.ts';

/** An onion layer of the pipeline. The whole contract is in plugins/README.md. */
export interface Plugin<PluginConfig = unknown, Local extends object = Record<string, never>> extends Hooks<Local> {
  name: string;
  /** Neither `before` nor `after`: right after `limits`, before the session is recalled. */
  before?: string | string[];
  after?: string | string[];
  /** When it throws on a request it is logged and skipped (before `next`: next is called for it; in `onChunk`: off for this stream). */
  optional?: boolean;
  /** Checked on load against `plugins.<name>`; a zod schema fits. */
  config?: { parse(value: unknown): PluginConfig };
  /** Fresh state for each entry of `handle`; handed to all three hooks. */
  local?: () => Local;
  /** Once a generation; not called again while its configuration is unchanged. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a setup that returns nothing is the common one
  setup?(hermes: Hermes, config: PluginConfig, previous?: Hooks<Local>): Hooks<Local> | void | Promise<Hooks<Local> | void>;
}
export interface Hooks<Local extends object = Record<string, never>> {
  /** What stands before `await next()` sees the request, what stands after it the answer's final head. `return next()` costs nothing. */
  handle?(exchange: Exchange, next: Next, local: Local): unknown;
  /** Each event of a stream with content in it; synchronous. `undefined` drops it. */
  onChunk?(chunk: Chunk, exchange: Exchange, local: Local): Chunk | undefined;
  /** `onChunk` only looks (its result is ignored): the bytes stay relayable. */
  watches?: boolean;
  /** Exactly once for every entered `handle`, before the client sees the end; a throw turns the end into that error. */
  onEnd?(exchange: Exchange, outcome: Outcome, local: Local): void | Promise<void>;
  /** After the last exchange of its generation. */
  close?(): void | Promise<void>;
}
/** Runs what stands inside. Never rejects: a failure below is an answer with `error`. Resolves at the final head (stream) or the whole body. */
export interface Next {
  /** Once an exchange; a second call throws and names `fork()`. */
  (): Promise<Answer>;
  /** Any number, at once too, also from inside the answer's stream; does not touch the parent's answer. */
  (fork: Exchange): Promise<Answer>;
}
/** What a plugin's `setup` gets. */
export interface Hermes {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Hermes' own rooms; typed, for hermes' own plugins and for those that take their place. */
  readonly rooms: Rooms;
  addProvider(name: string, provider: Provider): void;
  addMatcher(name: string, matcher: Matcher): void;
  /** Throws an Error that says what is wrong with it. A tool of the same id in the configuration wins. */
  addTool(tool: LocalToolInit): void;
}

/** Declares a plugin; a plain object of the same shape is taken as well. */
export function definePlugin<PluginConfig = unknown, Local extends object = Record<string, never>>(
  plugin: Plugin<PluginConfig, Local>,
): Plugin<PluginConfig, Local> {
  return plugin;
}
