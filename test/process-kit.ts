import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KEY } from './app-kit.ts';
import { freePort, temporaryFolder, until } from './services.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** The product as a process of its own, for what only the end of a process shows. */
export interface Gateway {
  base: string;
  /** Requests fail until it has been started again. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
  post(body: object, signal?: AbortSignal): Promise<Response>;
  /** What the cold store holds of a session, as one line a message: `u:text`. */
  messages(session: string): Promise<string[]>;
}

/** Started and ready. The same address and files every time. */
export async function startGateway(config: object, env: Record<string, string> = {}): Promise<Gateway> {
  const folder = temporaryFolder();
  const [port, file] = [await freePort(), join(folder, 'hermes.yaml')];
  writeFileSync(file, JSON.stringify({ ...config, pipeline: { plugins_dir: folder }, server: { host: '127.0.0.1', port } }));
  const base = `http://127.0.0.1:${port}`;
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  let child: ChildProcess | undefined;
  const leave = (): void => void child?.kill('SIGKILL');
  process.on('exit', leave);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  };
  const made: Gateway = {
    base,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    async start() {
      child = spawn(process.execPath, ['--import', 'tsx', MAIN, 'serve', '--config', file], {
        stdio: 'ignore',
        env: { PATH: process.env.PATH, API_KEY: KEY, LOG_LEVEL: 'error', DATABASE_URL: `sqlite:///${join(folder, 'hermes.db')}`, ...env },
      });
      child.unref();
      await until(async () => (await fetch(`${base}/readyz`)).ok, 'the gateway was not ready', 30_000);
    },
    post: (body, signal) => fetch(`${base}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body), ...(signal ? { signal } : {}) }),
    async messages(session) {
      const response = await fetch(`${base}/admin/sessions/${encodeURIComponent(session)}/export?format=json`, { headers });
      if (response.status === 404) return [];
      const { data } = (await response.json()) as { data: { role: string; content: unknown }[] };
      return data.map(({ role, content }) => `${role[0]}:${String(content)}`);
    },
  };
  await made.start();
  return made;
}
