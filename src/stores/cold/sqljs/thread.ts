import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { VersionConflict } from '../../../contracts/cold-store.ts';
import { StoreUnavailable } from '../../../contracts/hot-store.ts';
import type { Log } from '../../../contracts/telemetry.ts';
import { toJson } from '../sql/text.ts';
import type { FromThread, OperationName, Reply, Request, ThreadOptions } from './protocol.ts';

export interface DatabaseThread {
  open(): Promise<void>;
  /** `session` names the conflict. */
  call(operation: OperationName, args: readonly unknown[], session?: string): Promise<unknown>;
  close(): Promise<void>;
}
interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
  session: string;
}

const RESTART_MS = 500;
/** Rows live in the database's own memory; what JavaScript there makes is short-lived, and three 16 MB half-spaces would be kept for it. */
const LIMITS = { maxYoungGenerationSizeMb: 8 };

/** Source files run under a TypeScript loader (development, tests), which a new thread does not inherit; compiled ones need none. */
function startWorker(workerData: ThreadOptions): Worker {
  const extension = extname(fileURLToPath(import.meta.url));
  const entry = new URL(`./database-worker${extension}`, import.meta.url);
  if (extension !== '.ts') return new Worker(entry, { workerData, resourceLimits: LIMITS });
  const loader = `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))}; register(); await import(${JSON.stringify(entry.href)});`;
  return new Worker(new URL(`data:text/javascript,${encodeURIComponent(loader)}`), { workerData, resourceLimits: LIMITS, execArgv: [] });
}

export function createThread(options: ThreadOptions, log: Log): DatabaseThread {
  return new Thread(options, log);
}

class Thread implements DatabaseThread {
  readonly #options: ThreadOptions;
  readonly #log: Log;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #outgoing: Request[] = [];
  #nextId = 1;
  #closed = false;
  /** Once it has been open it is opened anew for as long as it takes; a first start that fails is the caller's affair. */
  #opened = false;

  constructor(options: ThreadOptions, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#start(resolve, reject);
    });
  }

  #start(opened: () => void, failed: (error: Error) => void): void {
    const worker = startWorker(this.#options);
    this.#worker = worker;
    worker.on('message', (message: FromThread) => {
      if ('replies' in message) this.#settle(message.replies);
      else if ('log' in message) this.#log[message.log.level](message.log.fields, message.log.message);
      else if ('opened' in message) {
        this.#opened = true;
        opened();
        this.#hold();
      } else if ('failed' in message) {
        this.#closed = !this.#opened;
        failed(new Error(message.failed));
      }
    });
    worker.on('error', (error) => this.#log.error({ err: error }, 'the thread of the embedded database failed'));
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      failed(new StoreUnavailable('sqljs'));
      this.#rejectAll();
      if (!this.#closed) setTimeout(() => this.#restart(), RESTART_MS).unref();
    });
  }

  /** What was acknowledged is in the journal; a new thread replays it. */
  #restart(): void {
    if (this.#closed || this.#worker !== undefined) return;
    this.#start(
      () => this.#log.warn({}, 'the embedded database was opened anew'),
      (error) => this.#log.error({ err: error }, 'the embedded database could not be opened anew'),
    );
  }

  call(operation: OperationName, args: readonly unknown[], session = ''): Promise<unknown> {
    if (this.#worker === undefined || this.#closed) return Promise.reject(new StoreUnavailable('sqljs'));
    const text = toJson(args);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject, session });
      if (this.#outgoing.length === 0) queueMicrotask(() => this.#post());
      this.#outgoing.push([id, operation, text]);
      if (this.#waiting.size === 1) this.#worker?.ref();
    });
  }
  #post(): void {
    const requests = this.#outgoing;
    this.#outgoing = [];
    this.#worker?.postMessage({ requests });
  }
  #settle(replies: readonly Reply[]): void {
    for (const [id, outcome, value] of replies) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (outcome === 'done') waiting?.resolve(value);
      else if (outcome === 'conflict') waiting?.reject(new VersionConflict(waiting.session));
      else if (outcome === 'refused') waiting?.reject(new Error(`the embedded database refused: ${String(value)}`));
      else waiting?.reject(new StoreUnavailable('sqljs', value));
    }
    this.#hold();
  }
  /** The thread keeps the process alive only while somebody waits for it: for a reply, or for its end. */
  #hold(): void {
    if (this.#waiting.size === 0 && !this.#closed) this.#worker?.unref();
  }
  #rejectAll(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new StoreUnavailable('sqljs'));
    this.#waiting.clear();
    this.#outgoing = [];
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || this.#closed) return;
    if (this.#outgoing.length > 0) this.#post();
    this.#closed = true;
    worker.ref();
    await new Promise<void>((resolve) => {
      worker.on('message', (message: FromThread) => {
        if ('closed' in message) resolve();
      });
      worker.once('exit', () => resolve());
      worker.postMessage({ close: true });
    });
    await worker.terminate();
  }
}
