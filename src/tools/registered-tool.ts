import type { ToolConfig, ToolSettings } from '../contracts/config.ts';
import type { ToolView } from '../contracts/rooms.ts';
import type { McpServer } from './mcp-server.ts';

/** A tool of an MCP server, under the settings of its source. */
export interface McpTool extends ToolSettings {
  description: string | undefined;
  parameters: Record<string, unknown> | undefined;
  side_effects: boolean;
  server: McpServer;
  /** As the server calls it. */
  name: string;
}
/** Whatever the model can call and hermes runs. */
export type RegisteredTool = ToolConfig | McpTool;

/** Where a tool is and how hermes signs to it is nobody's business but the operator's files'. */
export function toToolView(tool: RegisteredTool): ToolView {
  if ('server' in tool) {
    const { server: _server, name, ...view } = tool;
    return { ...view, source: view.id.slice(0, -name.length - 1) };
  }
  if ('run' in tool) {
    const { run: _run, description, parameters, ...view } = tool;
    return { ...view, description, parameters, source: undefined };
  }
  const { endpoint: _endpoint, secret_env: _secret, description, parameters, ...view } = tool;
  return { ...view, description, parameters, source: undefined };
}
