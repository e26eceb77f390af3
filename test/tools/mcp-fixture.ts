import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

/** One line a call that ran: where a test, or a process that outlives this one, can count them. */
type Ran = (line: string) => void;

/** A real MCP server with a tool that reads, one that changes something, and a few that misbehave. */
export function makeMcpServer(ran: Ran): McpServer {
  const server = new McpServer({ name: 'files', version: '1' });
  const read = {
    description: 'reads a file',
    inputSchema: { path: z.string(), line: z.union([z.number(), z.string()]).optional() },
    annotations: { readOnlyHint: true },
  };
  server.registerTool('read', read, ({ path, line }, extra) => {
    ran(`read ${path} ${line ?? ''} ${String(extra._meta?.['hermes-agent/request_id'])}`);
    return { content: [{ type: 'text', text: `${path} says ${process.env.GREETING ?? 'nothing'} ${process.env.HERMES_TEST_SECRET ?? ''}` }] };
  });
  server.registerTool('write', { inputSchema: { path: z.string() } }, ({ path }) => {
    ran(`write ${path}`);
    return { content: [{ type: 'text', text: 'written' }] };
  });
  server.registerTool('fail', { annotations: { readOnlyHint: true } }, () => ({ isError: true, content: [{ type: 'text', text: 'no such file' }] }));
  server.registerTool('stall', { annotations: { readOnlyHint: true } }, () => new Promise<never>(() => undefined));
  server.registerTool('picture', { annotations: { readOnlyHint: true } }, () => ({ content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }] }));
  server.registerTool('die', {}, () => {
    ran('die');
    process.exit(1);
  });
  server.registerTool('more', { annotations: { readOnlyHint: true } }, () => {
    server.registerTool('late', { annotations: { readOnlyHint: true } }, () => ({ content: [{ type: 'text', text: 'better than never' }] }));
    return { content: [{ type: 'text', text: 'there is one more' }] };
  });
  return server;
}

export interface HttpMcp {
  url: string;
  lines: string[];
  /** Of every request that reached it. */
  seen: IncomingHttpHeaders[];
  /** Forgets its sessions, as a restart does. */
  forget(): void;
  close(): Promise<void>;
}

export async function startHttpMcp(port = 0): Promise<HttpMcp> {
  const lines: string[] = [];
  const seen: IncomingHttpHeaders[] = [];
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const http = createServer(async (request, response) => {
    seen.push(request.headers);
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body: unknown = pieces.length > 0 ? JSON.parse(Buffer.concat(pieces).toString()) : undefined;
    let transport = sessions.get(String(request.headers['mcp-session-id']));
    if (!transport && isInitializeRequest(body)) {
      const made = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), onsessioninitialized: (id) => void sessions.set(id, made) });
      transport = made;
      await makeMcpServer((line) => void lines.push(line)).connect(made as Parameters<McpServer['connect']>[0]);
    }
    if (transport) await transport.handleRequest(request, response, body);
    else response.writeHead(404).end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null }));
  });
  await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    lines,
    seen,
    forget: () => sessions.clear(),
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}

// Run as a program it is a server over its standard input and output; its only argument is the file that calls are noted in.
const [, program, notes] = process.argv;
if (program?.endsWith('mcp-fixture.ts') && notes) await makeMcpServer((line) => appendFileSync(notes, `${line}\n`)).connect(new StdioServerTransport());
