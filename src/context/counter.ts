import { Worker } from 'node:worker_threads';
import type { Log } from '../contracts/telemetry.ts';
import type { Counted, CountJob } from './count-worker.ts';
import type { Encoding } from './encoding.ts';

/** Counts in a thread of its own: the event loop neither loads tiktoken nor runs it. */
export interface Counter {
  /** The sum of these texts' tokens. */
  count(encoding: Encoding, texts: string[]): Promise<number>;
  close(): Promise<void>;
}
interface Pending {
  texts: readonly string[];
  resolve(tokens: number): void;
}

/** Bytes a token, for the one case that the thread is lost. */
const BYTES_A_TOKEN = 4;

export function createCounter(log: Log): Counter {
  const pending = new Map<number, Pending>();
  let worker: Worker | undefined;
  let batch: CountJob[] = [];
  let last = 0;

  const lost = (thrown: unknown): void => {
    worker = undefined;
    if (pending.size > 0) log.warn({ err: thrown, counts: pending.size }, 'the token counting thread ended; these counts are estimates');
    for (const { texts, resolve } of pending.values()) resolve(estimate(texts));
    pending.clear();
  };
  const started = (): Worker => {
    if (worker) return worker;
    const thread = startWorker();
    worker = thread;
    thread.on('message', (results: Counted[]) => {
      for (const { id, tokens } of results) {
        pending.get(id)?.resolve(tokens);
        pending.delete(id);
      }
      // What nobody waits for must not keep the process alive.
      if (pending.size === 0) thread.unref();
    });
    thread.on('error', lost);
    thread.on('exit', (code) => worker === thread && lost(new Error(`exit code ${code}`)));
    return thread;
  };
  const flush = (): void => {
    const jobs = batch;
    batch = [];
    try {
      const thread = started();
      thread.ref();
      thread.postMessage(jobs);
    } catch (thrown) {
      lost(thrown);
    }
  };

  return {
    count(encoding, texts) {
      return new Promise((resolve) => {
        last += 1;
        pending.set(last, { texts, resolve });
        // All that is asked within one turn of the loop travels as one message: waking the thread costs more than most counts.
        if (batch.length === 0) setImmediate(flush);
        batch.push({ id: last, encoding, texts });
      });
    },
    async close() {
      const thread = worker;
      lost(undefined);
      await thread?.terminate();
    },
  };
}

function estimate(texts: readonly string[]): number {
  return Math.ceil(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / BYTES_A_TOKEN);
}

/** A checkout without a build runs TypeScript by tsx, whose hooks Node 20 does not hand on to threads. */
function startWorker(): Worker {
  if (import.meta.url.endsWith('.js')) return new Worker(new URL('./count-worker.js', import.meta.url));
  const source = new URL('./count-worker.ts', import.meta.url).href;
  const hooks = import.meta.resolve('tsx/esm/api');
  return new Worker(new URL(`data:text/javascript,import{register}from${JSON.stringify(hooks)};register();await import(${JSON.stringify(source)})`));
}
