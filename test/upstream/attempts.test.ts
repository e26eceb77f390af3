import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { events, type RunningApp, startApp, user } from '../app-kit.ts';
import { type Behaviour, createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type Toolbox, toolbox, toolOf } from '../tools/tools-kit.ts';

let fake: FakeUpstream;
let box: Toolbox;
let app: RunningApp;

const fails: Behaviour = (reply) => reply.error(503);
/** Refuses what hermes adds by itself, as some compatible servers do. */
const refusesStreamOptions: Behaviour = (reply, call) =>
  call.body.stream_options === undefined && call.body.max_tokens === undefined
    ? reply.completion({ content: 'taught' })
    : reply.error(400, call.body.stream_options ? 'unknown field stream_options' : 'Unsupported parameter: use max_completion_tokens', {
        type: 'invalid_request_error',
        param: call.body.stream_options ? 'stream_options' : 'max_tokens',
        code: 'unsupported_parameter',
      });

before(async () => {
  fake = await createFakeUpstream();
  box = await toolbox({ look: () => ({ seen: true }) });
  fake.on('down', fails);
  fake.on('moved', (reply) => reply.json({}, 301, { location: 'https://elsewhere.example/v1' }));
  fake.on('pupil', refusesStreamOptions);
  fake.on('slow', async (reply) => {
    await new Promise((resolve) => setTimeout(resolve, 400));
    await reply.completion({ content: 'late' });
  });
  fake.on('caller', (reply, call) =>
    call.body.messages.at(-1)?.role === 'tool'
      ? reply.completion({ content: 'seen' })
      : reply.completion({ tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"order_id":"1"}' } }] }),
  );
  const at = (id: string, more: object = {}) => ({ id, provider: 'openai', model_name: id, api_base: fake.url, api_key_env: 'UP', ...more });
  const pool = (id: string, targets: string[], failover: object = {}) => ({
    id,
    failover: { strategy: 'priority', failure_threshold: 1000, upstreams: targets.map((target) => ({ target })), ...failover },
  });
  app = await startApp(
    {
      models: [
        ...['down', 'well', 'slow', 'caller', 'moved'].map((id) => at(id)),
        at('pupil', { max_tokens: 50 }),
        pool('over', ['down', 'well']),
        pool('over_moved', ['moved', 'well']),
        pool('back', ['down'], { max_attempts: 2, max_retry_after_ms: 1000, fallback_target: 'well' }),
        pool('hedged', ['slow', 'well'], { hedge_ms: 50 }),
        pool('rounds', ['down', 'caller']),
        pool('hopeless', ['down'], { max_attempts: 2 }),
      ],
      default_model: 'well',
      tools: [toolOf(box, 'look')],
    },
    { env: { UP: 'sk-up' } },
  );
});
after(async () => {
  await app.stop();
  await box.close();
  await fake.close();
});

/** What the client is told, and how many calls reached the upstreams meanwhile. */
async function ask(model: string, more: object = {}): Promise<{ told: number; header: number; reached: number }> {
  const before = fake.calls.length;
  const reply = await app.chat({ model, messages: user('hi'), ...more }, { 'x-hermes-verbose': '1' });
  const hermes = (more as { stream?: boolean }).stream
    ? (events(reply).findLast((event) => typeof event === 'object' && event !== null && 'hermes' in event) as { hermes?: object } | undefined)?.hermes
    : reply.json.hermes;
  return {
    told: Number((hermes as { attempts?: number } | undefined)?.attempts),
    header: Number(reply.headers.get('x-hermes-attempts')),
    reached: fake.calls.length - before,
  };
}

describe('the attempts that a client is told are all upstream calls of its request', () => {
  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole';
    for (const [model, what, calls] of [
      ['well', 'one call', 1],
      ['over', 'a failover', 2],
      ['back', 'tries of one upstream and its fallback', 3],
      ['hedged', 'a hedge, the slower one too', 2],
    ] as const) {
      test(`${what}, ${how}`, async () => {
        const more = { stream, ...(model === 'hedged' ? { priority: 'urgent' } : {}) };
        assert.deepEqual(await ask(model, more), { told: calls, header: calls, reached: calls });
      });
    }

    test(`rounds of tools, with a failover in each, ${how}`, async () => {
      const { told, header, reached } = await ask('rounds', { stream, tools: ['look'] });
      assert.equal(reached, 4);
      assert.equal(told, 4);
      // The head of a stream leaves with its first round.
      assert.equal(header, stream ? 2 : 4);
    });
  }

  test('calls made again after the upstream had refused something of ours, once taught no more', async () => {
    assert.deepEqual(await ask('pupil', { stream: true, max_tokens: 5 }), { told: 3, header: 3, reached: 3 });
    assert.deepEqual(await ask('pupil', { stream: true, max_tokens: 5 }), { told: 1, header: 1, reached: 1 });
  });

  test('a request that failed', async () => {
    const reply = await app.chat({ model: 'hopeless', messages: user('hi') });
    assert.equal(reply.status, 503);
    assert.equal(reply.headers.get('x-hermes-attempts'), '2');
  });
});

test('a redirect is not followed: another upstream is tried, the same one is not, and its operator is told what to mend', async () => {
  const over = await app.chat({ messages: user('hi'), model: 'over_moved' });
  assert.deepEqual([over.status, over.headers.get('x-hermes-upstream')], [200, 'well']);
  for (const stream of [false, true]) {
    const alone = await app.chat({ messages: user('hi'), model: 'moved', stream });
    assert.equal(alone.status, 502);
    assert.match(alone.json.error?.message ?? '', /moved answered 301.*redirects.*api_base/);
    assert.doesNotMatch(alone.text, /elsewhere/);
    assert.equal(alone.headers.get('x-hermes-attempts'), '1');
  }
});
