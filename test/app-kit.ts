import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type App, createApp } from '../src/app.ts';
import type { Log } from '../src/contracts/telemetry.ts';

export const KEY = 'sk-test-3f9c1d7e5a2b48c6';

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  [field: string]: unknown;
}
export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  json: { [field: string]: unknown; error?: { message: string; type: string; code: string | null; param: string | null } };
}
export interface RunningApp {
  base: string;
  app: App;
  folder: string;
  lines: LogLine[];
  fetch(path: string, init?: RequestInit): Promise<Reply>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>;
  chat(body: object, headers?: Record<string, string>): Promise<Reply>;
  stop(): Promise<void>;
}

/** A log that keeps its lines. */
export function keepLog(lines: LogLine[], bound: object = {}): Log {
  const at = (level: LogLine['level']) => (fields: object, message: string) => void lines.push({ level, message, ...bound, ...fields });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: (fields) => keepLog(lines, { ...bound, ...fields }) };
}

/** The whole product in this process, on a free port. `files` are plugin files by name. */
export async function startApp(
  config: object,
  { env = {}, files = {} }: { env?: Record<string, string>; files?: Record<string, string> } = {},
): Promise<RunningApp> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-test-'));
  const plugins = mkdtempSync(join(folder, 'plugins-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(plugins, name), text);
  const file = join(folder, 'hermes.yaml');
  writeFileSync(file, JSON.stringify({ models: [{ id: 'fast_model', provider: 'simulator' }], pipeline: { plugins_dir: plugins }, ...config }));
  const lines: LogLine[] = [];
  const log = keepLog(lines);
  const load = { file, env: { API_KEY: KEY, DATABASE_URL: 'sqlite::memory:', ...env }, flags: { port: 0, host: '127.0.0.1' } };
  let app: App;
  try {
    app = await createApp({ load, createLog: () => log });
  } catch (thrown) {
    rmSync(folder, { recursive: true, force: true });
    throw thrown;
  }
  const base = `http://127.0.0.1:${app.port}`;
  const ask = async (path: string, init: RequestInit = {}): Promise<Reply> => {
    const response = await fetch(base + path, { ...init, headers: { authorization: `Bearer ${KEY}`, ...(init.headers as Record<string, string>) } });
    const text = await response.text();
    let json: Reply['json'] = {};
    try {
      json = JSON.parse(text) as Reply['json'];
    } catch {
      // not JSON: the text says what it is
    }
    return { status: response.status, headers: response.headers, text, json };
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
    ask(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } });
  return {
    base,
    app,
    folder,
    lines,
    fetch: ask,
    post,
    chat: (body, headers) => post('/v1/chat/completions', body, headers),
    async stop() {
      await app.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const user = (content: string): { role: string; content: string }[] => [{ role: 'user', content }];

/** The text of an answer, whole or streamed. */
export function saidIn(reply: Reply): string {
  if (!reply.text.startsWith('data:')) return String((reply.json as { choices?: { message: { content: string } }[] }).choices?.[0]?.message.content ?? '');
  return events(reply)
    .map((event) => (event as { choices?: { delta?: { content?: string } }[] }).choices?.[0]?.delta?.content ?? '')
    .join('');
}

/** The data events of a stream, the terminal marker as its string. */
export function events(reply: Reply): unknown[] {
  return reply.text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => (event === 'data: [DONE]' ? '[DONE]' : (JSON.parse(event.slice(6)) as unknown)));
}
