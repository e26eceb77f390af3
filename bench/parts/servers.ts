import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const running = new Set<ChildProcess>();
const folders: string[] = [];

export interface Server {
  name: string;
  port: number;
  pid: number;
}

/** Ends everything that was started; called at the end and when the run is broken off. */
export function stopAll(): void {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
process.on('exit', stopAll);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-bench-'));
  folders.push(folder);
  return folder;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export async function start(
  name: string,
  command: string,
  args: readonly string[],
  port: number,
  env: Record<string, string> = {},
  cwd: string = root,
): Promise<Server> {
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (said = `${said}${String(data)}`.slice(-2000)));
  for (const end = Date.now() + 20_000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    if (child.exitCode !== null) break;
    if (await answers(port)) return { name, port, pid: child.pid ?? 0 };
  }
  throw new Error(`${name} did not start: ${said}`);
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

const COMPLETION = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1790000000,
  model: 'bench-model',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'The order 20240515 left the warehouse this morning and will be with you tomorrow. '.repeat(6) },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 120, completion_tokens: 96, total_tokens: 216 },
});
const EVENTS = 50;
function sse(): string {
  const event = (choices: unknown, more = {}) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1790000000, model: 'bench-model', system_fingerprint: 'fp_bench', choices, ...more })}\n\n`;
  const words = Array.from({ length: EVENTS }, (_, index) => event([{ index: 0, delta: { content: `word${index} ` }, logprobs: null, finish_reason: null }]));
  return `${event([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])}${words.join('')}${event([{ index: 0, delta: {}, finish_reason: 'stop' }])}${event([], { usage: { prompt_tokens: 120, completion_tokens: 96, total_tokens: 216 } })}data: [DONE]\n\n`;
}

const MESSAGE = JSON.stringify({
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'bench-model',
  content: [{ type: 'text', text: 'The order 20240515 left the warehouse this morning and will be with you tomorrow. '.repeat(6) }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 120, output_tokens: 96 },
});
function anthropicSse(): string {
  const event = (value: { type: string; [field: string]: unknown }) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  const words = Array.from({ length: EVENTS }, (_, index) =>
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `word${index} ` } }),
  );
  const message = {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: 'bench-model',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 120, output_tokens: 1 },
  };
  return [
    event({ type: 'message_start', message }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ...words,
    event({ type: 'content_block_stop', index: 0 }),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 96 } }),
    event({ type: 'message_stop' }),
  ].join('');
}

/** A fast upstream: nginx answering a fixed completion, or the whole of a fixed stream in one packet (`/sse/…`). */
export async function startNginx(): Promise<Server> {
  const port = await freePort();
  const folder = scratch();
  mkdirSync(join(folder, 'html'));
  const answers = { 'completion.json': COMPLETION, 'stream.txt': sse(), 'message.json': MESSAGE, 'events.txt': anthropicSse() };
  for (const [name, text] of Object.entries(answers)) writeFileSync(join(folder, 'html', name), text);
  const config = `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  client_max_body_size 64m; client_body_buffer_size 8m;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    # An internal redirect to a path turns the POST into the GET that static files want.
    location = /v1/chat/completions { error_page 405 =200 /completion.json; return 405; }
    location = /sse/v1/chat/completions { error_page 405 =200 /stream.txt; return 405; }
    location = /anthropic/v1/messages { error_page 405 =200 /message.json; return 405; }
    location = /anthropic-sse/v1/messages { error_page 405 =200 /events.txt; return 405; }
    location = /message.json { internal; default_type application/json; root ${folder}/html; }
    location = /events.txt { internal; types { } default_type text/event-stream; root ${folder}/html; }
    location = /completion.json { internal; default_type application/json; root ${folder}/html; }
    location = /stream.txt { internal; types { } default_type text/event-stream; root ${folder}/html; }
  }
}`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  return start('nginx', 'nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], port);
}
