import type { Agent } from 'node:http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { ATTR_PROCESS_PID, ATTR_SERVICE_NAME } from '@opentelemetry/semantic-conventions/incubating';
import type { KeptTrace } from './kept-trace.ts';
import { toReadableSpans } from './otlp-spans.ts';

/** One request to the collector, OpenTelemetry's own second tries with it. */
const TIMEOUT_MS = 5000;

/** `refused`: the collector will never take it. A thrown error: not now. */
export type Sent = 'ok' | 'refused';
export interface OtlpSender {
  send(traces: readonly KeptTrace[]): Promise<Sent>;
}

/**
 * OpenTelemetry's own exporter. It and its conventions take some 20 MB and a tenth of a second to load: this module is for
 * `import()`, where there is an endpoint. What OpenTelemetry's variables say
 * (`OTEL_EXPORTER_OTLP_HEADERS`, `_CERTIFICATE`, `_COMPRESSION`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`) it reads by itself.
 * `agent`: where the way there goes by a proxy; it knows the certificates of `NODE_EXTRA_CA_CERTS` alone.
 */
export function createOtlpSender(url: string, agent: Agent | undefined): OtlpSender {
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: TIMEOUT_MS, ...(agent ? { httpAgentOptions: () => agent } : {}) });
  const origin = {
    resource: resourceFromAttributes({ [ATTR_SERVICE_NAME]: 'hermes-agent', [ATTR_PROCESS_PID]: process.pid }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    instrumentationScope: { name: 'hermes-agent' },
  };
  return {
    send(traces) {
      const spans = traces.flatMap((trace) => toReadableSpans(trace, origin));
      return new Promise((resolve, reject) => {
        exporter.export(spans, ({ error }) => {
          if (error === undefined) resolve('ok');
          else if (isFinal(error)) resolve('refused');
          else reject(error);
        });
      });
    },
  };
}

/** An answer of the collector that no other try will change; what could be tried again comes without a status. */
function isFinal(error: Error): boolean {
  return 'code' in error && typeof error.code === 'number';
}
