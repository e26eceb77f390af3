import type { Dispatcher } from 'undici';
import type { Config, ToolSourceConfig } from '../contracts/config.ts';
import type { Log } from '../contracts/telemetry.ts';
import { McpServer } from './mcp-server.ts';
import type { McpTool, RegisteredTool } from './registered-tool.ts';

/** Every tool that hermes runs: the configuration's own, and those of its MCP servers as far as they are known. */
export class ToolRegistry {
  readonly #log: Log;
  readonly #dispatcher: Dispatcher | undefined;
  readonly #servers = new Map<string, McpServer>();
  readonly #known = new WeakMap<Config, { version: number; tools: ReadonlyMap<string, RegisteredTool> }>();
  /** Counts changes of any server's list. */
  #version = 0;

  constructor(log: Log, dispatcher: Dispatcher | undefined) {
    this.#log = log;
    this.#dispatcher = dispatcher;
  }

  /** The servers of this configuration are connected, those of none but earlier ones are left. */
  use(config: Config): void {
    const inUse = new Set<string>();
    for (const source of config.tool_sources) {
      const key = toServerKey(source, config);
      inUse.add(key);
      if (this.#servers.has(key)) continue;
      const secret = source.mcp.command ? undefined : source.mcp.secret_env && config.secrets.get(source.mcp.secret_env);
      const server = new McpServer({ id: source.id, config: source.mcp, secret, dispatcher: this.#dispatcher, log: this.#log, changed: () => this.#version++ });
      this.#servers.set(key, server);
      server.start();
    }
    for (const [key, server] of this.#servers) {
      if (inUse.has(key)) continue;
      this.#servers.delete(key);
      void server.retire();
    }
  }

  tools(config: Config): ReadonlyMap<string, RegisteredTool> {
    const known = this.#known.get(config);
    if (known?.version === this.#version) return known.tools;
    const tools = new Map<string, RegisteredTool>();
    for (const source of config.tool_sources) for (const tool of this.#toolsOf(source, config)) tools.set(tool.id, tool);
    // An entry of its own wins over a server's tool of the same name.
    for (const tool of config.tools) tools.set(tool.id, tool);
    this.#known.set(config, { version: this.#version, tools });
    return tools;
  }

  /** Undefined unless one of these names may be a tool of a server that has yet to be reached for the first time: a call's time is waited for that. */
  awaited(config: Config, names: readonly string[]): Promise<unknown> | undefined {
    if (config.tool_sources.length === 0) return undefined;
    const waits = config.tool_sources
      .filter(({ id }) => names.some((name) => mayBeOf(id, name)))
      .flatMap((source) => this.#servers.get(toServerKey(source, config))?.ready(source.timeout_ms) ?? []);
    return waits.length > 0 ? Promise.all(waits) : undefined;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.retire()));
    this.#servers.clear();
  }

  #toolsOf({ mcp, side_effects, ...settings }: ToolSourceConfig, config: Config): McpTool[] {
    const server = this.#servers.get(toServerKey({ ...settings, mcp }, config));
    return (server?.tools ?? []).map(({ name, description, parameters, readOnly }) => ({
      ...settings,
      id: `${settings.id}.${name}`,
      name,
      description,
      parameters,
      side_effects: side_effects ?? !readOnly,
      server: server as McpServer,
    }));
  }
}

/** `name` may be a pattern. */
function mayBeOf(source: string, name: string): boolean {
  const [fixed = ''] = name.split('*', 1);
  return fixed.startsWith(`${source}.`) || (fixed !== name && `${source}.`.startsWith(fixed));
}

/** Sources that name the same server share it, also over a reload. */
function toServerKey({ mcp }: ToolSourceConfig, config: Config): string {
  return JSON.stringify([mcp, mcp.command || mcp.secret_env === undefined ? null : config.secrets.get(mcp.secret_env)]);
}
