import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import type { Encoding } from './encoding.ts';
import { cutPieces } from './pieces.ts';
import { type Tokenizer, WordCounter } from './word-counter.ts';

/** Texts to be counted together; answered by their sum. */
export interface CountJob {
  id: number;
  encoding: Encoding;
  texts: string[];
}
export interface Counted {
  id: number;
  tokens: number;
}

interface Running {
  job: CountJob;
  pieces: Generator<string>;
  left: number;
  tokens: number;
}

/** A slice of work, after which shorter jobs that came in meanwhile go first: a megabyte delays nobody's small message. */
const SLICE_MS = 4;

const require = createRequire(import.meta.url);
const counters = new Map<Encoding, WordCounter>();
let running: Running[] = [];
let scheduled = false;

/** Built on first use: 160 ms and 50 MB for o200k_base. */
function counterOf(encoding: Encoding): WordCounter {
  let counter = counters.get(encoding);
  if (counter === undefined) {
    const { Tiktoken } = require('tiktoken/lite');
    const ranks = require(`tiktoken/encoders/${encoding}.json`);
    counter = new WordCounter(new Tiktoken(ranks.bpe_ranks, ranks.special_tokens, ranks.pat_str) as Tokenizer, ranks.pat_str);
    counters.set(encoding, counter);
  }
  return counter;
}

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts) yield* cutPieces(text);
}

function advance(task: Running, until: number): boolean {
  const counter = counterOf(task.job.encoding);
  for (;;) {
    const { done, value } = task.pieces.next();
    if (done) return true;
    task.tokens += counter.count(value);
    task.left -= value.length;
    if (performance.now() > until) return false;
  }
}

function work(): void {
  scheduled = false;
  const until = performance.now() + SLICE_MS;
  const finished: Counted[] = [];
  running.sort((a, b) => a.left - b.left);
  for (const task of [...running]) {
    if (!advance(task, until)) break;
    finished.push({ id: task.job.id, tokens: task.tokens });
    running = running.filter((other) => other !== task);
    if (performance.now() > until) break;
  }
  if (finished.length > 0) parentPort?.postMessage(finished);
  if (running.length > 0) schedule();
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(work);
}

parentPort?.on('message', (jobs: CountJob[]) => {
  for (const job of jobs) running.push({ job, pieces: piecesOf(job.texts), left: job.texts.reduce((sum, text) => sum + text.length, 0), tokens: 0 });
  schedule();
});
