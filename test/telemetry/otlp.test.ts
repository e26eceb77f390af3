import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, user } from '../app-kit.ts';
import { until } from '../services.ts';
import { startStopwatch } from '../time-kit.ts';
import { startBusyApp } from './busy-app.ts';
import { attributeOf, type Collector, startCollector } from './otlp-collector.ts';
import type { OtlpSpan, OtlpValue } from './otlp-wire.ts';

const KIND = { internal: 1, server: 2, client: 3 } as const;

function checkForm(span: OtlpSpan): void {
  assert.match(span.traceId, /^(?!0+$)[0-9a-f]{32}$/);
  assert.match(span.spanId, /^(?!0+$)[0-9a-f]{16}$/);
  if (span.parentSpanId !== undefined) assert.match(span.parentSpanId, /^(?!0+$)[0-9a-f]{16}$/);
  assert.ok(span.name.length > 0);
  assert.ok(Object.values<number>(KIND).includes(span.kind));
  assert.match(String(span.startTimeUnixNano), /^\d{19}$/);
  assert.ok(span.endTimeUnixNano >= span.startTimeUnixNano);
  const keys = (span.attributes ?? []).map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, 'an attribute stands twice');
  for (const { value } of span.attributes ?? []) assert.equal(Object.keys(value).length, 1);
}

type Requirement = 'required' | 'when it failed' | 'when it did not' | 'allowed';
const ofType: Readonly<Record<string, (value: OtlpValue) => boolean>> = {
  string: ({ stringValue }) => typeof stringValue === 'string' && stringValue !== '',
  int: ({ intValue }) => Number.isSafeInteger(intValue),
  double: ({ doubleValue, intValue }) => typeof (doubleValue ?? intValue) === 'number',
  boolean: ({ boolValue }) => typeof boolValue === 'boolean',
  'string[]': ({ arrayValue }) => (arrayValue?.values ?? []).length > 0 && arrayValue?.values.every((item) => typeof item.stringValue === 'string') === true,
};
/** The tables "Inference" and "Execute tool span" of https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/, as far as a gateway knows the facts. */
const CONVENTIONS: Readonly<Record<string, { kind: number; name: string; attributes: Readonly<Record<string, readonly [type: string, Requirement]>> }>> = {
  chat: {
    kind: KIND.client,
    name: 'gen_ai.request.model',
    attributes: {
      'gen_ai.operation.name': ['string', 'required'],
      'gen_ai.provider.name': ['string', 'required'],
      'gen_ai.request.model': ['string', 'required'],
      'gen_ai.request.stream': ['boolean', 'allowed'],
      'gen_ai.response.model': ['string', 'when it did not'],
      'gen_ai.response.finish_reasons': ['string[]', 'when it did not'],
      'gen_ai.response.time_to_first_chunk': ['double', 'allowed'],
      'gen_ai.conversation.id': ['string', 'allowed'],
      'gen_ai.usage.input_tokens': ['int', 'when it did not'],
      'gen_ai.usage.output_tokens': ['int', 'when it did not'],
      'gen_ai.usage.cache_read.input_tokens': ['int', 'allowed'],
      'error.type': ['string', 'when it failed'],
    },
  },
  execute_tool: {
    kind: KIND.internal,
    name: 'gen_ai.tool.name',
    attributes: {
      'gen_ai.operation.name': ['string', 'required'],
      'gen_ai.tool.name': ['string', 'required'],
      'gen_ai.tool.type': ['string', 'required'],
      'gen_ai.tool.call.id': ['string', 'required'],
      'error.type': ['string', 'when it failed'],
    },
  },
};

function checkConventions(span: OtlpSpan): void {
  const operation = attributeOf(span, 'gen_ai.operation.name');
  const given = new Map((span.attributes ?? []).map(({ key, value }) => [key, value]));
  if (operation === undefined) {
    for (const key of given.keys()) assert.ok(!key.startsWith('gen_ai.') || key === 'gen_ai.conversation.id', `${key} on ${span.name}`);
    return;
  }
  const convention = CONVENTIONS[String(operation)];
  assert.ok(convention, `there is no operation ${operation}`);
  assert.equal(span.kind, convention.kind);
  assert.equal(span.name, `${operation} ${attributeOf(span, convention.name)}`);
  const failed = span.status.code === 2;
  for (const [key, [type, requirement]] of Object.entries(convention.attributes)) {
    const value = given.get(key);
    if (value !== undefined) assert.ok(ofType[type]?.(value), `${key} is no ${type}: ${JSON.stringify(value)}`);
    const wanted = requirement === 'required' || requirement === (failed ? 'when it failed' : 'when it did not');
    assert.ok(!wanted || value !== undefined, `${span.name}, ${failed ? 'failed' : 'ok'}, lacks ${key}`);
    if (key === 'error.type' && !failed) assert.equal(value, undefined);
  }
  for (const key of given.keys()) assert.ok(!key.startsWith('gen_ai.') || key in convention.attributes, `${key} belongs to no ${operation}`);
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
    process.env.OTEL_EXPORTER_OTLP_HEADERS = 'x-team=shop';
    try {
      await withApp(async (app) => {
        await app.traffic(1);
        await app.chat({ messages: user('hello') }, { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });
      });
    } finally {
      delete process.env.OTEL_EXPORTER_OTLP_HEADERS;
    }
    const { spans } = collector;
    assert.deepEqual(collector.refused, []);
    for (const span of spans) {
      checkForm(span);
      checkConventions(span);
    }
    assert.ok(collector.paths.every((path) => path === '/v1/traces'));
    assert.ok(collector.headers.every((headers) => headers['x-team'] === 'shop'));
    assert.ok(collector.resources.every((attributes) => attributes.some(({ key, value }) => key === 'service.name' && value.stringValue === 'hermes-agent')));
    const chats = spans.filter((span) => attributeOf(span, 'gen_ai.operation.name') === 'chat');
    assert.ok(chats.some(({ status }) => status.code === 2) && chats.some(({ status }) => status.code === 0));
    assert.ok(
      chats.some((span) => attributeOf(span, 'gen_ai.request.stream') === true && Number(attributeOf(span, 'gen_ai.response.time_to_first_chunk')) > 0),
    );
    assert.ok(spans.some((span) => span.name === 'execute_tool order.query'));
    assert.ok(!collector.bodies.some((body) => body.includes('important person')), 'content in a span');
  });

  it('are whole: every span has its parent, and a caller’s trace goes on', () => {
    const { spans } = collector;
    const roots = spans.filter(({ kind }) => kind === KIND.server);
    assert.equal(new Set(roots.map((span) => attributeOf(span, 'hermes.x_request_id'))).size, roots.length);
    for (const span of spans.filter(({ kind }) => kind !== KIND.server))
      assert.ok(
        spans.some(({ spanId, traceId }) => spanId === span.parentSpanId && traceId === span.traceId),
        `${span.name} has no parent`,
      );
    for (const root of roots) {
      const within = spans.filter(({ traceId, kind }) => traceId === root.traceId && kind !== KIND.server);
      assert.ok(
        within.every(
          ({ startTimeUnixNano, endTimeUnixNano }) => startTimeUnixNano >= root.startTimeUnixNano && endTimeUnixNano <= root.endTimeUnixNano + 1000n,
        ),
      );
    }
    assert.ok(roots.some(({ traceId, parentSpanId }) => traceId === '0af7651916cd43dd8448eb211c80319c' && parentSpanId === 'b7ad6b7169203331'));
  });

  it('arrive all, when many come at once', async () => {
    collector.spans = [];
    await withApp(async (app) => {
      await Promise.all(Array.from({ length: 300 }, () => app.chat({ messages: user('hello') })));
      const roots = (): number => collector.spans.filter(({ kind }) => kind === KIND.server).length;
      await until(() => roots() === 300, 'some are missing');
    });
    assert.deepEqual(collector.refused, []);
  });

  it('are tried again when the collector was overloaded', async () => {
    collector.spans = [];
    collector.status = 503;
    await withApp(async (app) => {
      await app.chat({ messages: user('hello') });
      const asked = collector.paths.length;
      await until(() => collector.paths.length > asked, 'the collector was not asked', 10_000);
      collector.status = 200;
      await until(() => collector.spans.length > 0, 'it was not asked again', 20_000);
      await until(async () => (await app.fetch('/metrics')).text.includes('hermes_traces_exported_total{outcome="ok"} 1'), 'it is not counted', 5000);
    });
  });

  it('are lost and counted where the collector refuses them, and the next ones are sent', async () => {
    collector.spans = [];
    collector.status = 400;
    await withApp(async (app) => {
      await app.chat({ messages: user('hello') });
      await until(async () => (await app.fetch('/metrics')).text.includes('hermes_traces_exported_total{outcome="lost"} 1'), 'nothing was lost', 10_000);
      collector.status = 200;
      await app.chat({ messages: user('hello') });
      await until(() => collector.spans.length > 0, 'nothing more was sent', 10_000);
      assert.equal(collector.spans.filter(({ kind }) => kind === KIND.server).length, 1);
    });
  });

  it('cost a request nothing while the collector is silent or away, and leave the end of the process alone', async () => {
    const times = async (app: RunningApp): Promise<number> => {
      const watch = startStopwatch();
      for (let at = 0; at < 20; at++) assert.equal((await app.chat({ messages: user('hello') })).status, 200);
      return watch.stop();
    };
    collector.status = 200;
    let taken = 0;
    await withApp(async (app) => {
      await times(app);
      taken = await times(app);
    });
    collector.status = undefined;
    for (const endpoint of [collector.url, 'http://127.0.0.1:9']) {
      let closing = startStopwatch();
      await withApp(async (app) => {
        await times(app);
        if (endpoint === collector.url) {
          const asked = collector.paths.length;
          await until(() => collector.paths.length > asked, 'the collector was not asked', 10_000);
        }
        // A request that waited for the collector would take its time-out of five seconds.
        const now = await times(app);
        assert.ok(now < 10 * taken + 2000, `${now} ms, ${taken} with a collector that answers`);
        closing.stop();
        closing = startStopwatch();
      }, endpoint);
      assert.ok(closing.stop() < 4000, `${closing.ms()} ms`);
    }
  });
});

describe('OpenTelemetry', () => {
  it('is loaded where there is an endpoint, and nowhere else', () => {
    const loaded = (endpoint: string): string[] => {
      const script = `
        import { createRequire } from 'node:module';
        import { createApp } from './src/app.ts';
        const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
        const load = { file: 'config/demo.yaml', env: { DATABASE_URL: 'sqlite::memory:' }, flags: { port: 0, host: '127.0.0.1' } };
        const app = await createApp({ load, createLog: () => silent });
        app.config().trace.otlp_endpoint = '${endpoint}';
        await new Promise((resolve) => setTimeout(resolve, 2500));
        const names = Object.keys(createRequire(import.meta.url).cache);
        await app.stop();
        process.stdout.write(JSON.stringify(names.filter((name) => /@opentelemetry.(exporter|otlp|sdk|resources|semantic)/.test(name))), () => process.exit());`;
      return JSON.parse(execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], { encoding: 'utf8' })) as string[];
    };
    assert.deepEqual(loaded(''), []);
    assert.ok(loaded('http://127.0.0.1:9').length > 0);
  });
});
