import cluster, { type Worker } from 'node:cluster';
import type { Answers } from '../app/peers.ts';
import type { StopOptions } from '../app.ts';
import { Line } from './line.ts';
import type { Address, OfPrimary, OfWorker, Settings } from './protocol.ts';

const LAST_WORDS_MS = 1000;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}
/** What a primary answers whoever the worker is. */
export type PrimaryAnswers = Omit<Answers<OfPrimary>, 'hello' | 'listening' | 'failed'>;

type Beginning = Pick<Answers<OfPrimary>, 'hello' | 'listening' | 'failed'>;

/** One worker process, as its primary sees it. */
export class Member {
  /** From 1; the one that takes its place has the same. */
  readonly number: number;
  /** Which configuration it began with: the primary's count of reloads. */
  readonly age: number;
  readonly line: Line<OfWorker, OfPrimary>;
  /** It listens; rejects with what stood in the way. */
  readonly ready: Promise<Address>;
  /** After all that it had to say was heard. */
  readonly ended: Promise<Ended>;
  /** `leaving`: by our wish. */
  state: 'starting' | 'ready' | 'leaving' = 'starting';
  readonly #worker: Worker;

  constructor(number: number, age: number, settings: Settings, answers: (member: Member) => PrimaryAnswers) {
    this.number = number;
    this.age = age;
    const worker = cluster.fork();
    this.#worker = worker;
    let beginning: Beginning | undefined;
    this.ready = new Promise((resolve, reject) => {
      beginning = this.#begin(settings, resolve, reject);
    });
    // Whoever waits for it hears of it; who does not, needs not.
    this.ready.catch(() => undefined);
    this.line = new Line<OfWorker, OfPrimary>((message) => worker.send(message, ignoreFailure), { ...beginning, ...answers(this) });
    worker.on('message', (message) => this.line.hear(message));
    // A channel that breaks is told by `disconnect`, a process that cannot be made by `exit`.
    worker.on('error', () => undefined);
    worker.on('disconnect', () => this.line.close());
    const exit = new Promise<Ended>((resolve) => worker.once('exit', (code, signal) => resolve({ code, signal: signal as NodeJS.Signals | null })));
    // What it said last may be heard after its end was.
    const silent = new Promise<void>((resolve) => worker.once('disconnect', () => resolve()));
    const patience = exit.then(() => new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS)));
    this.ended = Promise.race([silent, patience]).then(() => {
      this.line.close();
      return exit;
    });
  }

  #begin(settings: Settings, resolve: (address: Address) => void, reject: (error: Error) => void): Beginning {
    this.#worker.once('exit', (code, signal) => reject(new Error(`a worker ended before it listened (${signal ?? `exit code ${code}`})`)));
    return {
      hello: () => settings,
      listening: (address) => {
        if (this.state === 'starting') this.state = 'ready';
        resolve(address);
        return undefined;
      },
      failed: ({ message, code }) => {
        reject(Object.assign(new Error(message), code === undefined ? {} : { code }));
        return undefined;
      },
    };
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  /** Lets it finish what it has; resolves when the process is gone. `limitMs`: then it is killed. */
  async dismiss(options: StopOptions, limitMs: number): Promise<Ended> {
    this.state = 'leaving';
    this.line.ask('stop', options).catch(() => this.kill());
    const timer = setTimeout(() => this.kill(), limitMs);
    const ended = await this.ended;
    clearTimeout(timer);
    return ended;
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }
}

function ignoreFailure(): void {
  // Told by `disconnect`.
}
