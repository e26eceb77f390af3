import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Dispatcher, fetch } from 'undici';
import type { McpServerConfig } from '../contracts/config.ts';

/** A program may have to be fetched before it starts. */
const START_MS = 60_000;
const CONNECT_MS = 10_000;
/** Of what a program says while it does not start. */
const MAX_TOLD = 500;

export interface McpConnection {
  client: Client;
  close(): Promise<void>;
}

export interface McpConnectOptions {
  config: McpServerConfig;
  secret: string | undefined;
  /** For calls over HTTP. */
  dispatcher: Dispatcher | undefined;
  signal: AbortSignal;
}

/** Starts or reaches a server and shakes hands with it. The SDK is loaded by the first configuration that names a server. */
export async function connectMcp({ config, secret, dispatcher, signal }: McpConnectOptions): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { transport, told, end } = await createTransport(config, secret, dispatcher);
  const client = new Client({ name: 'hermes-agent', version: '1' }, { capabilities: {} });
  const close = async (): Promise<void> => {
    await end().catch(() => undefined);
    await client.close().catch(() => undefined);
  };
  try {
    await client.connect(transport, { timeout: config.command ? START_MS : CONNECT_MS, signal });
  } catch (thrown) {
    await close();
    throw new Error(`the MCP server could not be reached${told()}`, { cause: thrown });
  }
  return { client, close };
}

interface MadeTransport {
  transport: Transport;
  told(): string;
  /** Takes leave of the server, where that is asked for. */
  end(): Promise<void>;
}

async function createTransport(config: McpServerConfig, secret: string | undefined, dispatcher: Dispatcher | undefined): Promise<MadeTransport> {
  if (!config.command) {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const headers = { ...config.headers, ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }) };
    const transport = new StreamableHTTPClientTransport(new URL(config.url), {
      requestInit: { headers },
      ...(dispatcher ? { fetch: fetchBy(dispatcher) } : {}),
    });
    return { transport: transport as Transport, told: () => '', end: () => transport.terminateSession() };
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const [command = '', ...args] = config.command;
  const transport = new StdioClientTransport({ command, args, env: config.env, stderr: 'pipe' });
  let said = '';
  // Read for ever, or a full pipe would stop the program; kept only while it starts: later it may hold content.
  transport.stderr?.on('data', (piece: Buffer) => {
    if (said.length < MAX_TOLD) said += piece.toString();
  });
  return { transport, told: () => (said === '' ? '' : `: ${said.slice(0, MAX_TOLD).trim()}`), end: async () => undefined };
}

/** Undici's own: Node's would know of no proxy, and give up a call that takes five minutes. What the SDK sends is text. */
function fetchBy(dispatcher: Dispatcher) {
  return (url: string | URL, { body, headers, ...init }: RequestInit = {}): Promise<Response> =>
    fetch(url, { ...init, headers: Object.fromEntries(new Headers(headers)), body: typeof body === 'string' ? body : null, dispatcher });
}
