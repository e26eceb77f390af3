import type { Log, Metrics } from '../contracts/telemetry.ts';
import type { KeptTrace } from './kept-trace.ts';
import { toAttributes, toOtlpSpans } from './otlp-spans.ts';

/** Traces that wait for the collector at most; then the oldest go. */
const MAX_WAITING = 2048;
/** Traces a request: turning them into JSON takes a few milliseconds, not more. */
const BATCH = 64;
const EVERY_MS = 1000;
const TIMEOUT_MS = 5000;
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
  log: Log;
  metrics: Metrics;
}

/**
 * Traces to an OpenTelemetry collector: OTLP over HTTP, in its JSON encoding. Behind a bounded queue, so that a collector that
 * is away or slow costs nothing but the traces it misses.
 */
export function createTraceExporter({ endpoint, log, metrics }: TraceExporterDeps): TraceExporter {
  const sent = metrics.counter('hermes_traces_exported_total', 'Traces that the OpenTelemetry collector has taken or that were lost on the way to it.', [
    'outcome',
  ]);
  let waiting: KeptTrace[] = [];
  let pauseMs = 0;
  let quietUntil = 0;
  let running: Promise<void> | undefined;
  const closing = new AbortController();

  const lose = (traces: number): void => sent.inc({ outcome: 'lost' }, traces);

  /** False: not now; what was not taken waits on. */
  const sendBatch = async (address: string): Promise<boolean> => {
    const batch = waiting.slice(0, BATCH);
    waiting = waiting.slice(BATCH);
    try {
      const response = await fetch(address, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(toExportRequest(batch)),
        signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), closing.signal]),
      });
      await response.arrayBuffer();
      const refused = !response.ok;
      // What the collector will never take is not sent again (OTLP: only 429 and 502 to 504 are).
      if (refused && (response.status === 429 || response.status >= 502)) throw new Error(`the collector answered ${response.status}`);
      if (refused) lose(batch.length);
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

  const send = async (): Promise<void> => {
    const base = endpoint();
    if (base === '') {
      waiting = [];
      return;
    }
    const address = `${base.replace(/\/+$/, '').replace(/\/v1\/traces$/, '')}/v1/traces`;
    while (waiting.length > 0 && (await sendBatch(address)));
  };

  const timer = setInterval(() => {
    if (waiting.length === 0 || performance.now() < quietUntil) return;
    running ??= send().finally(() => {
      running = undefined;
    });
  }, EVERY_MS);
  timer.unref();

  return {
    add(trace) {
      if (endpoint() === '') return;
      waiting.push(trace);
      if (waiting.length <= MAX_WAITING) return;
      waiting = waiting.slice(BATCH);
      lose(BATCH);
    },
    async close() {
      clearInterval(timer);
      setTimeout(() => closing.abort(), CLOSE_MS).unref();
      await running;
      if (pauseMs === 0) await send();
    },
  };
}

function toExportRequest(traces: readonly KeptTrace[]): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: toAttributes({ 'service.name': 'hermes-agent', 'process.pid': process.pid }) },
        scopeSpans: [{ scope: { name: 'hermes-agent' }, spans: traces.flatMap(toOtlpSpans) }],
      },
    ],
  };
}

/** Never the address: a message of Node's carries it. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'unknown';
  const cause = thrown.cause;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return thrown.name === 'TypeError' ? 'no connection' : thrown.message;
}
