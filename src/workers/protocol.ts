import type { Questions } from '../app/peers.ts';
import type { StopOptions } from '../app.ts';
import type { ReloadResult } from '../config/reload.ts';
import type { MetricsFormat } from '../contracts/telemetry.ts';

/** What a worker is told at its start; the rest it reads itself. */
export interface Settings {
  /** Configuration file, absolute. */
  file: string;
  /** Fixed by the primary at its own start: a changed file must not move one worker to another port. */
  host: string;
  port: number;
  /** Made for this run because no key is configured. */
  generatedKey: string | undefined;
}
export interface Address {
  host: string;
  port: number;
}

/** What a worker answers to its primary. */
export type OfWorker = Questions & {
  reload: { ask: undefined; answer: ReloadResult };
  /** Answered at once; the worker says `leaving` when all is done. */
  stop: { ask: StopOptions; answer: undefined };
};

/** What a primary answers to a worker. */
export type OfPrimary = {
  /** The first word of a worker: what is said to it before that is lost. */
  hello: { ask: undefined; answer: Settings };
  listening: { ask: Address; answer: undefined };
  /** What stands in the way of listening; the process ends with the answer. */
  failed: { ask: { message: string; code: string | undefined }; answer: undefined };
  /** A question for all the others. */
  others: { ask: { name: keyof Questions; ask: unknown }; answer: unknown[] };
  /** Of all workers together, and the primary. */
  metrics: { ask: MetricsFormat; answer: string };
  reload: { ask: undefined; answer: ReloadResult };
  /** All requests are over; with its last metrics. The process ends with the answer. */
  leaving: { ask: string; answer: undefined };
};
