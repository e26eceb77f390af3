import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OtlpAttribute, OtlpSpan } from '../../src/telemetry/otlp-spans.ts';
import { type RunningApp, user } from '../app-kit.ts';
import { until } from '../services.ts';
import { startBusyApp } from './busy-app.ts';

interface Collector {
  url: string;
  paths: string[];
  resources: OtlpAttribute[][];
  spans: OtlpSpan[];
  /** What it answers with; undefined: nothing at all. */
  status: number | undefined;
  close(): void;
}

/** A collector's OTLP/HTTP receiver: takes only what opentelemetry-proto's JSON mapping allows. */
async function startCollector(): Promise<Collector> {
  const server: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      collector.paths.push(request.url ?? '');
      if (collector.status === undefined) return;
      if (collector.status === 200) {
        assert.equal(request.headers['content-type'], 'application/json');
        const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString()) as {
          resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { scope: { name: string }; spans: OtlpSpan[] }[] }[];
        };
        for (const { resource, scopeSpans } of resourceSpans) {
          collector.resources.push(resource.attributes);
          for (const { spans } of scopeSpans) collector.spans.push(...spans);
        }
      }
      response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
    });
  });
  const collector: Collector = { url: '', paths: [], resources: [], spans: [], status: 200, close: () => server.close() && server.closeAllConnections() };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  collector.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return collector;
}

const attributeOf = (span: OtlpSpan, key: string): unknown => {
  const value = span.attributes.find((attribute) => attribute.key === key)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
};

function checkForm(span: OtlpSpan): void {
  assert.match(span.traceId, /^(?!0+$)[0-9a-f]{32}$/);
  assert.match(span.spanId, /^(?!0+$)[0-9a-f]{16}$/);
  if (span.parentSpanId !== undefined) assert.match(span.parentSpanId, /^[0-9a-f]{16}$/);
  assert.ok(span.name.length > 0);
  assert.ok([1, 2, 3].includes(span.kind));
  assert.match(span.startTimeUnixNano, /^\d{19}$/);
  assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
  const keys = span.attributes.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, 'an attribute stands twice');
  for (const { value } of span.attributes) assert.equal(Object.keys(value).length, 1);
}

/** https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/: names, kinds, required attributes, and the types of all. */
function checkConventions(span: OtlpSpan): void {
  const operation = attributeOf(span, 'gen_ai.operation.name');
  if (operation === 'chat') {
    assert.equal(span.kind, 3);
    assert.equal(span.name, `chat ${attributeOf(span, 'gen_ai.request.model')}`);
    assert.equal(typeof attributeOf(span, 'gen_ai.provider.name'), 'string');
    if (span.status.code === 2) assert.equal(typeof attributeOf(span, 'error.type'), 'string');
    else {
      for (const key of ['gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens']) assert.match(String(attributeOf(span, key)), /^\d+$/);
      assert.equal(typeof attributeOf(span, 'gen_ai.response.model'), 'string');
      assert.ok('arrayValue' in (span.attributes.find(({ key }) => key === 'gen_ai.response.finish_reasons')?.value ?? {}));
    }
  }
  if (operation === 'execute_tool') {
    assert.equal(span.kind, 1);
    assert.equal(span.name, `execute_tool ${attributeOf(span, 'gen_ai.tool.name')}`);
    assert.equal(typeof attributeOf(span, 'gen_ai.tool.call.id'), 'string');
  }
  const own = span.attributes.filter(({ key }) => key.startsWith('gen_ai.')).map(({ key }) => key);
  const known =
    /^gen_ai\.(operation\.name|provider\.name|request\.model|response\.(model|finish_reasons)|conversation\.id|usage\.(input_tokens|output_tokens|cache_read\.input_tokens)|tool\.(name|type|call\.id))$/;
  for (const key of own) assert.match(key, known);
}

describe('traces for an OpenTelemetry collector', () => {
  let collector: Collector;
  before(async () => {
    collector = await startCollector();
  });
  after(() => collector.close());
  const withApp = async (run: (app: RunningApp & { traffic(round: number): Promise<unknown[]> }) => Promise<void>, endpoint = collector.url): Promise<void> => {
    const app = await startBusyApp({ trace: { otlp_endpoint: endpoint } });
    try {
      await run(app);
    } finally {
      await app.stop();
    }
  };

  it('hold to the GenAI conventions, model calls, failures and tools alike', async () => {
    await withApp(async (app) => {
      await app.traffic(1);
      await app.chat({ messages: user('hello') }, { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });
    });
    const { spans } = collector;
    for (const span of spans) {
      checkForm(span);
      checkConventions(span);
    }
    assert.ok(collector.paths.every((path) => path === '/v1/traces'));
    assert.ok(
      collector.resources.every((attributes) =>
        attributes.some(({ key, value }) => key === 'service.name' && 'stringValue' in value && value.stringValue === 'hermes-agent'),
      ),
    );
    const chats = spans.filter((span) => attributeOf(span, 'gen_ai.operation.name') === 'chat');
    assert.ok(chats.some(({ status }) => status.code === 2) && chats.some(({ status }) => status.code === 0));
    assert.ok(spans.some((span) => span.name === 'execute_tool order.query'));
    const roots = spans.filter(({ kind }) => kind === 2);
    for (const span of spans.filter(({ kind }) => kind !== 2))
      assert.ok(
        spans.some(({ spanId, traceId }) => spanId === span.parentSpanId && traceId === span.traceId),
        `${span.name} has no parent`,
      );
    assert.ok(roots.some(({ traceId, parentSpanId }) => traceId === '0af7651916cd43dd8448eb211c80319c' && parentSpanId === 'b7ad6b7169203331'));
    assert.ok(!JSON.stringify(spans).includes('important person'), 'content in a span');
  });

  it('are tried again when the collector was overloaded', async () => {
    collector.spans = [];
    collector.status = 503;
    await withApp(async (app) => {
      await app.chat({ messages: user('hello') });
      const asked = collector.paths.length;
      await until(() => collector.paths.length > asked, 'the collector was not asked', 5000);
      collector.status = 200;
      await until(() => collector.spans.length > 0, 'it was not asked again', 8000);
      assert.equal(app.lines.filter(({ message }) => String(message).includes('collector does not take')).length, 1);
    });
  });

  it('cost a request nothing while the collector is silent, and leave the end of the process alone', async () => {
    collector.status = undefined;
    await withApp(async (app) => {
      const asked = collector.paths.length;
      for (let at = 0; at < 5; at++) assert.equal((await app.chat({ messages: user('hello') })).status, 200);
      await until(() => collector.paths.length > asked, 'the collector was not asked', 5000);
      const start = performance.now();
      assert.equal((await app.chat({ messages: user('hello') })).status, 200);
      assert.ok(performance.now() - start < 1000);
      await sleep(10);
    });
  });
});
