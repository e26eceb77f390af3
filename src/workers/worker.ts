import cluster from 'node:cluster';
import type { Answers, Peers, Questions } from '../app/peers.ts';
import { type App, createApp, type StopOptions } from '../app.ts';
import type { Log } from '../contracts/telemetry.ts';
import { Line } from './line.ts';
import type { OfPrimary, OfWorker, Settings } from './protocol.ts';

/** For the answers of others: a view without one of them is better than none. */
const OTHERS_MS = 2000;
/** For what the primary gathers from everybody. */
const GATHERED_MS = 10_000;
const FAREWELL_MS = 1000;

/** A worker's whole life, in a process that a primary has started. Resolves when everything is flushed. */
export async function runWorker(createLog: (level: string) => Log, ready: () => void): Promise<void> {
  const send = process.send?.bind(process);
  if (send === undefined) throw new Error('a worker is started by hermes serve with server.workers, not by hand');
  // A terminal and a process manager signal every process of a group: the primary speaks for all of them.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => undefined);
  const life: { app?: App; own?: Answers<Questions>; ending?: Promise<void> } = {};
  let over = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    over = resolve;
  });

  const line: Line<OfPrimary, OfWorker> = new Line<OfPrimary, OfWorker>((message) => void send(message, undefined, undefined, () => undefined), {
    reload: () => (life.app ? life.app.reload() : Promise.reject(new Error('it has not begun'))),
    stop(options) {
      void end(options);
      return undefined;
    },
  });
  process.on('message', (message) => line.hear(message));

  /** Finishes what is in flight, once, whoever asks. */
  function end(options?: StopOptions): Promise<void> {
    life.ending ??= finish(options).catch((err: unknown) => {
      life.app?.log.error({ err }, 'stopping failed');
      process.exitCode = 1;
    });
    return life.ending.then(over);
  }
  async function finish(options: StopOptions | undefined): Promise<void> {
    await life.app?.stop(options);
    const text = await life.own?.metrics(undefined);
    if (text !== undefined) await line.ask('leaving', text, FAREWELL_MS).catch(() => undefined);
    if (process.connected) process.disconnect();
  }
  process.on('SIGTERM', () => void end());
  cluster.worker?.on('disconnect', () => {
    line.close();
    // Node would end the process here and now, with all that is in flight. The primary is gone: nothing new can come.
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
    void end();
  });

  try {
    const peers = createPeers(line, (answers) => Object.assign(life, { own: answers }));
    life.app = await createApp({ load: toLoad(await line.ask('hello', undefined)), createLog, peers });
    ready();
    await line.ask('listening', { host: life.app.host, port: life.app.port });
  } catch (thrown) {
    if (life.ending === undefined) await tellFailure(line, thrown);
  }
  await done;
}

/** Once, by the primary: each worker would say the same. */
async function tellFailure(line: Line<OfPrimary, OfWorker>, thrown: unknown): Promise<never> {
  const code = thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  await line.ask('failed', { message: thrown instanceof Error ? thrown.message : String(thrown), code }, FAREWELL_MS).catch(() => undefined);
  return process.exit(1);
}

function toLoad({ file, host, port, generatedKey }: Settings): Parameters<typeof createApp>[0]['load'] {
  return { file, flags: { host, port }, generatedKey };
}

function createPeers(line: Line<OfPrimary, OfWorker>, heard: (answers: Answers<Questions>) => void): Peers {
  return {
    answer(answers) {
      line.answer(answers);
      heard(answers);
    },
    others: (name, ask) => line.ask('others', { name, ask }, OTHERS_MS) as Promise<Questions[typeof name]['answer'][]>,
    metrics: (format = 'text') => line.ask('metrics', format, GATHERED_MS),
    reload: () => line.ask('reload', undefined),
  };
}
