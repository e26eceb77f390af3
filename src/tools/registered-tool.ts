import type { ToolConfig, ToolSettings } from '../contracts/config.ts';
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
