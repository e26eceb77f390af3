import type { KeptTrace } from './kept-trace.ts';

const IDS = 2 ** 32;

/** By `trace.sample`: a stable share of the good requests by their ids' last digits, and every one that failed or was degraded. */
export function isSampled({ id, status, answer }: KeptTrace, share: number): boolean {
  return share >= 1 || status >= 400 || answer.degraded === true || Number.parseInt(id.slice(-8), 16) < share * IDS;
}

/** A caller that takes part in a trace says by its flags whether that trace is recorded: a part of it alone would hang in the air. */
export function isRecordedByCaller({ trace }: KeptTrace): boolean {
  const { traceparent } = trace;
  return traceparent === undefined || (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;
}
