import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type OtlpAttribute, type OtlpSpan, readOtlpRequest } from './otlp-wire.ts';

export interface Collector {
  url: string;
  paths: string[];
  headers: Record<string, unknown>[];
  resources: OtlpAttribute[][];
  spans: OtlpSpan[];
  /** What was sent, as it came. */
  bodies: Buffer[];
  /** Requests that were no OTLP. */
  refused: string[];
  /** What it answers with; undefined: nothing at all. */
  status: number | undefined;
  close(): void;
}

/** A collector's OTLP/HTTP receiver. */
export async function startCollector(): Promise<Collector> {
  const server: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      collector.paths.push(request.url ?? '');
      collector.headers.push(request.headers);
      if (collector.status === undefined) return;
      if (collector.status === 200) read(Buffer.concat(parts), request.headers['content-type']);
      response.writeHead(collector.status, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  const read = (body: Buffer, contentType: string | undefined): void => {
    collector.bodies.push(body);
    try {
      if (contentType !== 'application/x-protobuf') throw new Error(`it is ${contentType}`);
      for (const { resource, scopeSpans } of readOtlpRequest(body).resourceSpans) {
        collector.resources.push(resource.attributes);
        for (const { spans } of scopeSpans) collector.spans.push(...spans);
      }
    } catch (thrown) {
      collector.refused.push(String(thrown));
    }
  };
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const collector: Collector = { url: '', paths: [], headers: [], resources: [], spans: [], bodies: [], refused: [], status: 200, close };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  collector.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return collector;
}

export function attributeOf(span: OtlpSpan, key: string): unknown {
  const value = span.attributes?.find((attribute) => attribute.key === key)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}
