import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Dispatcher } from 'undici';
import type { McpServerConfig } from '../contracts/config.ts';
import type { Log } from '../contracts/telemetry.ts';
import { isRecord, longIntegersAsText } from '../wire/json.ts';
import { connectMcp, type McpConnection } from './mcp-connect.ts';
import { toMcpFailure, toMcpTry } from './mcp-result.ts';
import type { McpTool } from './registered-tool.ts';
import { type ToolCallInput, type Try, timedOut } from './tries.ts';

/** A tool as its server describes it. */
export interface ListedTool {
  name: string;
  description: string | undefined;
  parameters: Record<string, unknown>;
  /** The server says that it changes nothing. */
  readOnly: boolean;
}
export interface McpServerOptions {
  /** For the log. */
  id: string;
  config: McpServerConfig;
  secret: string | undefined;
  /** For a server that is reached over HTTP. */
  dispatcher: Dispatcher | undefined;
  log: Log;
  /** Its list of tools is another one. */
  changed: () => void;
}

const MAX_TOOLS = 1000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const UNREACHED: Try = { kind: 'unsent', message: 'The tool cannot be reached.' };

/** One MCP server: kept connected, and connected again when it was lost. */
export class McpServer {
  /** Undefined until it has been reached once; what it last said while it is away. */
  tools: readonly ListedTool[] | undefined;
  readonly #options: McpServerOptions;
  #connection: McpConnection | undefined;
  #opening: Promise<McpConnection> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #calls = 0;
  /** Aborted when nobody needs the server any more. */
  readonly #retirement = new AbortController();

  constructor(options: McpServerOptions) {
    this.#options = options;
  }

  /** Connects in the background, for as long as it takes. */
  start(): void {
    this.#open().catch(() => undefined);
  }

  /** Waits for the first connection; undefined where there is nothing to wait for. */
  ready(ms: number): Promise<unknown> | undefined {
    return this.tools || this.#failures > 0 ? undefined : within(this.#open(), ms).catch(() => undefined);
  }

  /** Rejects only when the call's own signal ends it. */
  async call(input: ToolCallInput<McpTool>): Promise<Try> {
    this.#calls++;
    try {
      // Whoever holds a connection of before finds out that its session is gone: then nothing was done, and a new one is made.
      return (await this.#once(input)) ?? (await this.#once(input)) ?? UNREACHED;
    } finally {
      this.#calls--;
      if (this.#retirement.signal.aborted) void this.retire();
    }
  }

  /** Undefined: the session is gone. */
  async #once({ tool, requestId, sessionId, user, params, signal }: ToolCallInput<McpTool>): Promise<Try | undefined> {
    const began = performance.now();
    const connection = await within(this.#open(), tool.timeout_ms).catch(() => undefined);
    if (connection === undefined) return UNREACHED;
    const { CallToolResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const _meta = { 'hermes-agent/request_id': requestId, 'hermes-agent/session_id': sessionId, 'hermes-agent/user': user };
    // Most servers would round what JavaScript cannot hold.
    const request = { method: 'tools/call' as const, params: { name: tool.name, arguments: longIntegersAsText(params) as typeof params, _meta } };
    const timeout = Math.max(1, tool.timeout_ms - (performance.now() - began));
    try {
      return toMcpTry(await connection.client.request(request, CallToolResultSchema, { timeout, ...(signal ? { signal } : {}) }));
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason;
      const failed = toMcpFailure(thrown);
      if (failed === 'timeout') return timedOut(tool);
      if (failed === 'lost' || failed.kind === 'unsent' || failed.kind === 'unclear') this.#lost(connection);
      return failed === 'lost' ? undefined : failed;
    }
  }

  /** Closes when nothing runs on it any more; a call that comes later is told that it cannot be reached. */
  async retire(): Promise<void> {
    clearTimeout(this.#timer);
    this.#retirement.abort();
    if (this.#calls > 0) return;
    const connection = this.#connection ?? (await this.#opening?.catch(() => undefined));
    this.#connection = undefined;
    await connection?.close();
  }

  #open(): Promise<McpConnection> {
    if (this.#connection) return Promise.resolve(this.#connection);
    if (this.#retirement.signal.aborted) return Promise.reject(new Error('the MCP server is no longer configured'));
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<McpConnection> {
    const { id, config, secret, dispatcher, log } = this.#options;
    clearTimeout(this.#timer);
    let connection: McpConnection | undefined;
    try {
      connection = await connectMcp({ config, secret, dispatcher, signal: this.#retirement.signal });
      const opened = connection;
      await this.#list(opened.client);
      opened.client.onclose = () => this.#lost(opened);
      const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
      opened.client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.#list(opened.client).catch(() => this.#lost(opened)));
      this.#connection = opened;
      this.#failures = 0;
      log.info({ source: id, tools: this.tools?.length }, 'an MCP server is connected');
      return opened;
    } catch (err) {
      await connection?.close();
      if (this.#failures === 0 && !this.#retirement.signal.aborted) log.warn({ err, source: id }, 'an MCP server is away: its tools cannot be used');
      this.#again();
      throw err;
    }
  }

  #lost(connection: McpConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#options.log.warn({ source: this.#options.id }, 'the connection to an MCP server was lost');
    void connection.close();
    this.#again();
  }

  #again(): void {
    if (this.#retirement.signal.aborted) return;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures++;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.start(), pause).unref();
  }

  async #list(client: Client): Promise<void> {
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.listTools(cursor === undefined ? {} : { cursor });
      tools.push(...page.tools.filter(({ execution }) => execution?.taskSupport !== 'required').map(toListed));
      cursor = page.nextCursor;
    } while (cursor !== undefined && tools.length < MAX_TOOLS);
    this.tools = tools;
    this.#options.changed();
  }
}

function toListed({
  name,
  description,
  inputSchema,
  annotations,
}: {
  name: string;
  description?: string | undefined;
  inputSchema: unknown;
  annotations?: { readOnlyHint?: boolean | undefined } | undefined;
}): ListedTool {
  return { name, description, parameters: isRecord(inputSchema) ? inputSchema : {}, readOnly: annotations?.readOnlyHint === true };
}

async function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
