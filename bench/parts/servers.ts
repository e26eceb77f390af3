import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
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
  // A file takes what it says, as in production: to read it here would cost the cores that are measured.
  const said = join(scratch(), 'output');
  const output = openSync(said, 'w');
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env }, stdio: ['ignore', output, output] });
  closeSync(output);
  running.add(child);
  for (const end = Date.now() + 20_000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    if (child.exitCode !== null) break;
    if (await answers(port)) return { name, port, pid: child.pid ?? 0 };
  }
  throw new Error(`${name} did not start: ${readFileSync(said, 'utf8').slice(-2000)}`);
}

/** Ends one server; resolves when it is gone. */
export async function stop({ pid }: Server): Promise<void> {
  const child = [...running].find((each) => each.pid === pid);
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await gone;
  clearTimeout(timer);
  running.delete(child);
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
