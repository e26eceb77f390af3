import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KEY } from '../app-kit.ts';
import { temporaryFolder, until } from '../services.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const built = join(root, 'dist/src/main.js');
/** What was built where that is there (npm test builds first), else the sources. */
const PROGRAM = existsSync(built) ? [built] : ['--import', import.meta.resolve('tsx'), join(root, 'src/main.ts')];

/** The product as a process of its own, as an operator has it. */
export interface Instance {
  readonly base: string;
  readonly port: number;
  readonly folder: string;
  readonly process: ChildProcess;
  /** Everything that it wrote. */
  log(): string;
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface InstanceOptions {
  port?: number;
  env?: Record<string, string>;
  folder?: string;
  /** Before the program: `prlimit …`, `ip netns exec …`. */
  wrapper?: readonly string[];
  /** Where it listens, and where it is reached when that is everywhere. */
  host?: string;
  reachedAt?: string;
  /** Do not wait until it is ready. */
  unready?: boolean;
}

export async function startInstance(config: object, options: InstanceOptions = {}): Promise<Instance> {
  const { port = 0, env = {}, folder = temporaryFolder(), wrapper = [], host = '127.0.0.1' } = options;
  const file = join(folder, 'hermes.yaml');
  writeFileSync(file, JSON.stringify(config, null, 1));
  const words = [...wrapper, process.execPath, ...PROGRAM, 'serve', '--config', file, '--port', String(port), '--host', host];
  const child = spawn(words[0] as string, words.slice(1), {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, API_KEY: KEY, UP_KEY: 'sk-up', DATABASE_URL: `sqlite:///${folder}/data/hermes.db`, ...env },
  });
  running.add(child);
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (log += data));
  const exited = once(child, 'exit').then(([code, signal]) => {
    running.delete(child);
    return code ?? signal;
  });
  let address: string | undefined;
  if (!options.unready)
    await until(
      () => {
        if (child.exitCode !== null) throw new Error(log);
        address = /"address":"([^"]+)"/.exec(log)?.[1];
        return address !== undefined;
      },
      `hermes did not start: ${log.slice(-500)}`,
      30_000,
    );
  const listens = Number(new URL(address ?? `http://127.0.0.1:${port}`).port);
  const base = `http://${options.reachedAt ?? host}:${listens}`;
  return { base, port: listens, folder, process: child, log: () => log, kill: (signal) => void child.kill(signal), exited };
}
