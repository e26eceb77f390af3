import type { Agent } from 'node:http';
import type { Log, Metrics } from '../contracts/telemetry.ts';
import type { KeptTrace } from './kept-trace.ts';
import type { OtlpSender } from './otlp-sender.ts';
import { isRecordedByCaller } from './sampling.ts';

/** Traces that wait for the collector at most; then the oldest go. */
const MAX_WAITING = 2048;
/** Traces a request: making spans of them and writing these takes a few milliseconds, not more. */
const BATCH = 64;
const EVERY_MS = 1000;
const MAX_PAUSE_MS = 60_000;
/** The end of the process waits no longer for a collector. */
const CLOSE_MS = 1000;

export interface TraceExporter {
  /** Returns at once. */
  add(trace: KeptTrace): void;
  /** Sends what waits, once. */
  close(): Promise<void>;
}
export interface TraceExporterDeps {
  /** `trace.otlp_endpoint` of the configuration in use; empty: off. */
  endpoint(): string;
  /** Where the way there goes by a proxy. */
  agent(url: string): Agent | undefined;
  log: Log;
  metrics: Metrics;
}

/**
 * Traces to an OpenTelemetry collector, behind a bounded queue of references: spans are made and written in batches beside the
 * requests' way, and a collector that is away or slow costs nothing but the traces it misses. The library is loaded when
 * there is an endpoint.
 */
export function createTraceExporter({ endpoint, agent, log, metrics }: TraceExporterDeps): TraceExporter {
  const sent = metrics.counter('hermes_traces_exported_total', 'Traces that the OpenTelemetry collector has taken or that were lost on the way to it.', [
    'outcome',
  ]);
  let waiting: KeptTrace[] = [];
  let pauseMs = 0;
  let quietUntil = 0;
  let running: Promise<void> | undefined;
  let current: { base: string; sender: Promise<OtlpSender> } | undefined;

  const senderFor = (base: string): Promise<OtlpSender> => {
    if (current?.base !== base) {
      const url = toAddress(base);
      current = { base, sender: import('./otlp-sender.ts').then(({ createOtlpSender }) => createOtlpSender(url, agent(url))) };
    }
    return current.sender;
  };
  const lose = (traces: number): void => sent.inc({ outcome: 'lost' }, traces);

  /** False: not now; what was not taken waits on. */
  const sendBatch = async (base: string): Promise<boolean> => {
    const batch = waiting.slice(0, BATCH);
    waiting = waiting.slice(BATCH);
    try {
      const outcome = await (await senderFor(base)).send(batch);
      if (outcome === 'refused') lose(batch.length);
      else sent.inc({ outcome: 'ok' }, batch.length);
      if (pauseMs > 0) log.info({}, 'the trace collector is back');
      pauseMs = 0;
      return true;
    } catch (thrown) {
      if (pauseMs === 0) log.warn({ reason: reasonOf(thrown) }, 'the trace collector does not take traces; it will be tried again');
      pauseMs = Math.min(MAX_PAUSE_MS, pauseMs === 0 ? EVERY_MS : pauseMs * 2);
      quietUntil = performance.now() + pauseMs;
      waiting = [...batch, ...waiting];
      return false;
    }
  };

  const send = async (base: string): Promise<void> => {
    while (waiting.length > 0 && (await sendBatch(base)));
  };

  const tick = (): void => {
    const base = endpoint();
    if (base === '') waiting = [];
    else if (waiting.length === 0) senderFor(base).catch(() => undefined);
    else if (performance.now() >= quietUntil)
      running ??= send(base).finally(() => {
        running = undefined;
      });
  };
  const timer = setInterval(tick, EVERY_MS);
  timer.unref();

  return {
    add(trace) {
      if (endpoint() === '' || !isRecordedByCaller(trace)) return;
      waiting.push(trace);
      if (waiting.length <= MAX_WAITING) return;
      waiting = waiting.slice(BATCH);
      lose(BATCH);
    },
    async close() {
      clearInterval(timer);
      const base = endpoint();
      if (base === '' || pauseMs > 0) return;
      const rest = (running ?? Promise.resolve()).then(() => (pauseMs === 0 ? send(base) : undefined));
      const enough = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
      await Promise.race([rest, enough]);
    },
  };
}

function toAddress(base: string): string {
  return `${base.replace(/\/+$/, '').replace(/\/v1\/traces$/, '')}/v1/traces`;
}

/** Never the address: messages of Node's carry it. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'unknown';
  return 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : thrown.message.replaceAll(/\bhttps?:\S+/g, '').trim();
}
