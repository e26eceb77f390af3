import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HermesError } from '../../src/contracts/errors.ts';
import { failureOf } from '../../src/upstream/failure.ts';
import { collect } from '../../src/wire/collect.ts';
import { makeConfig } from '../config/make-config.ts';
import { toEventText, USAGE } from '../fake-upstream.ts';
import { startStopwatch } from '../time-kit.ts';
import { createSender, drain, type Sender, textOf } from './send-kit.ts';

let s: Sender;
before(async () => {
  s = await createSender();
});
after(async () => {
  assert.deepEqual(s.upstream.violations, []);
  await s.close();
});

const last = () => s.booked.at(-1);

test('a whole answer keeps its bytes, its usage and is booked once', async () => {
  const raw =
    '{"id":"x","object":"chat.completion","created":1,"model":"m-real","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":5}},"trace_id":9007199254740993}';
  s.upstream.on('raw', (reply) => reply.json(raw));
  const { exchange, answer } = await s.ask({}, { modelName: 'raw' });
  assert.equal(answer.status, 200);
  assert.equal(Buffer.from(answer.raw?.bytes ?? []).toString(), raw);
  assert.equal(textOf(answer), 'ok');
  assert.deepEqual([answer.facts.model, answer.facts.upstream, answer.facts.finishReason, answer.facts.usage?.prompt_tokens], ['model-1', 'up', 'stop', 7]);
  assert.ok((answer.facts.waitedMs ?? 0) > 0);
  assert.equal(exchange.calls.length, 1);
  assert.deepEqual(last()?.tokens, { input: 7, cached: 5, cacheWrite: 0, output: 3, reasoning: 0 });
  assert.deepEqual([last()?.outcome, last()?.estimated, last()?.answered, last()?.status], ['ok', false, true, 200]);
  assert.equal(exchange.trace.spans.filter((span) => span.name === 'attempt').length, 1);
});

test('the upstream gets its own name of the model, its key, and nothing of the caller', async () => {
  await s.ask({ session: undefined, temperature: 0.2 }, { modelName: 'name-there', headers: { 'X-Team': 'a' }, query: { v: '1' } });
  const call = s.upstream.callsOf('name-there').at(-1);
  assert.equal(call?.headers.authorization, 'Bearer sk-upstream-secret');
  assert.equal(call?.headers['x-team'], 'a');
  assert.equal(call?.path, '/v1/chat/completions?v=1');
  assert.deepEqual(Object.keys(call?.headers ?? {}).sort(), [
    'accept',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'host',
    'user-agent',
    'x-team',
  ]);
});

test('a stream comes as it is made, with its usage in the books', async () => {
  s.upstream.on('paced', (reply) => reply.completion({ content: 'one two three' }, { delayMs: 30 }));
  const { answer } = await s.ask({ stream: true }, { modelName: 'paced' });
  const first = await answer.stream?.read();
  assert.ok(first?.bytes);
  const rest = await drain(answer.stream);
  assert.equal(rest.text, 'one two three');
  assert.equal(rest.finish, 'stop');
  assert.equal(rest.error, undefined);
  assert.deepEqual([last()?.tokens.input, last()?.tokens.output, last()?.estimated, last()?.outcome], [10, 5, false, 'ok']);
  assert.ok((last()?.firstTokenMs ?? 0) > 0);
  assert.equal(answer.facts.usage?.total_tokens, 15);
});

for (const [status, code, kind] of [
  [400, 'upstream_refused', 'invalid'],
  [401, 'upstream_auth_failed', 'auth'],
  [403, 'upstream_auth_failed', 'auth'],
  [402, 'upstream_quota_exhausted', 'quota'],
  [404, 'upstream_model_missing', 'model_missing'],
  [408, 'upstream_timeout', 'timeout'],
  [409, 'upstream_error', 'conflict'],
  [422, 'upstream_refused', 'invalid'],
  [429, 'rate_limit_exceeded', 'rate_limited'],
  [500, 'upstream_error', 'overloaded'],
  [529, 'upstream_error', 'overloaded'],
] as const) {
  test(`${status} is ${kind}, for a stream as well`, async () => {
    s.upstream.on(`status-${status}`, (reply) => reply.error(status, `boom at http://10.0.0.1:8000/v1 ${status}`, { headers: { 'retry-after': '2' } }));
    for (const stream of [false, true]) {
      const { answer } = await s.ask({ stream }, { modelName: `status-${status}` });
      assert.equal(answer.error?.code, code);
      const failure = failureOf(answer.error as HermesError);
      assert.deepEqual([failure?.kind, failure?.status, failure?.retryAfterMs], [kind, status, 2000]);
      assert.doesNotMatch(answer.error?.message ?? '', /10\.0\.0\.1/);
      assert.equal(last()?.outcome, status === 429 ? 'rate_limited' : status === 408 ? 'timeout' : 'error');
      assert.equal(last()?.answered, false);
    }
  });
}

test('a 400 keeps the upstream status, code, param and message', async () => {
  s.upstream.on('bad', (reply) =>
    reply.error(400, 'temperature is not supported', { type: 'invalid_request_error', param: 'temperature', code: 'unsupported_value' }),
  );
  const { answer } = await s.ask({}, { modelName: 'bad' });
  assert.deepEqual(
    [answer.error?.status, answer.error?.wireCode, answer.error?.param, answer.error?.message],
    [400, 'unsupported_value', 'temperature', 'temperature is not supported'],
  );
});

const noAnswer: Record<string, string> = {
  'an HTML page': '<html>maintenance</html>',
  'half a JSON': '{"id":"x","choi',
  'blank lines': '\n\n\n',
  nothing: '',
  'no choices': '{"id":"x","object":"chat.completion","choices":[]}',
  'content: null': '{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}',
};
for (const [what, body] of Object.entries(noAnswer)) {
  test(`200 with ${what} is no answer`, async () => {
    s.upstream.on('none', (reply) => reply.json(body, 200, what === 'an HTML page' ? { 'content-type': 'text/html' } : {}));
    for (const stream of [false, true]) {
      const { answer } = await s.ask({ stream }, { modelName: 'none' });
      assert.equal(answer.error?.code, 'upstream_empty_answer');
    }
  });
}
test('200 with an error object is what that error says', async () => {
  s.upstream.on('object', (reply) => reply.json({ error: { message: 'overloaded', type: 'server_error' } }));
  for (const stream of [false, true]) {
    const { answer } = await s.ask({ stream }, { modelName: 'object' });
    assert.equal(failureOf(answer.error as HermesError)?.kind, 'overloaded');
  }
});
test('an empty text that was cut by its length is an answer', async () => {
  s.upstream.on('length', (reply) => reply.completion({ content: '' }, { finish: 'length' }));
  assert.equal((await s.ask({}, { modelName: 'length' })).answer.error, undefined);
  const { answer } = await s.ask({ stream: true }, { modelName: 'length' });
  assert.deepEqual([(await drain(answer.stream)).finish], ['length']);
});
test('a whole completion for a stream is spread, a stream for a whole one collected', async () => {
  s.upstream.on('json-always', (reply) =>
    reply.json({
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
      usage: USAGE,
    }),
  );
  const streamed = await s.ask({ stream: true }, { modelName: 'json-always' });
  assert.deepEqual([(await drain(streamed.answer.stream)).text, last()?.tokens.output], ['hi', 5]);
  s.upstream.on('sse-always', (reply) => reply.stream([{ role: 'assistant', content: '' }, { content: 'hi' }, 'stop', { usage: USAGE }]));
  const whole = await s.ask({}, { modelName: 'sse-always' });
  assert.deepEqual([textOf(whole.answer), last()?.tokens.output, whole.exchange.calls.length], ['hi', 5, 1]);
});
test('a missing key is told without a call', async () => {
  const before_ = s.upstream.calls.length;
  const { answer, exchange } = await s.ask({}, { apiKey: undefined });
  assert.deepEqual([answer.error?.code, answer.error?.status, s.upstream.calls.length - before_, exchange.calls.length], ['upstream_key_missing', 500, 0, 0]);
  assert.match(answer.error?.message ?? '', /UP_KEY/);
});

test('connections that are refused, reset or closed are upstream errors without an address', async () => {
  s.upstream.on('reset', (reply) => reply.reset());
  s.upstream.on('closed', (reply) => reply.cut(0));
  for (const target of [{ apiBase: 'http://127.0.0.1:1/v1' }, { modelName: 'reset' }, { modelName: 'closed' }, { apiBase: 'http://nowhere.invalid/v1' }]) {
    const { answer } = await s.ask({}, target);
    assert.equal(answer.error?.code, 'upstream_error');
    assert.equal(failureOf(answer.error as HermesError), undefined);
    assert.doesNotMatch(`${answer.error?.message} ${String(answer.error?.cause)}`, /127\.0|nowhere/);
    assert.equal(last()?.outcome, 'error');
  }
});

test('limits: the whole, the head of a stream, its first content, silence between chunks', async () => {
  s.upstream.on('hang', (reply) => reply.stall());
  s.upstream.on('head-only', (reply) => void reply.open());
  s.upstream.on('role-only', (reply) => reply.stream([{ role: 'assistant', content: '' }], { done: false, end: false }));
  s.upstream.on('comments', (reply) => {
    reply.open();
    const timer = setInterval(() => reply.bytes(': keep-alive\n\n'), 20);
    reply.response.on('close', () => clearInterval(timer));
  });
  s.upstream.on('some', (reply) => reply.stream([{ role: 'assistant', content: '' }, { content: 'some' }], { done: false, end: false }));
  const limits = { timeoutMs: 150, firstTokenTimeoutMs: 150 };
  const whole = await s.ask({}, { modelName: 'hang', ...limits, firstTokenTimeoutMs: 9000 });
  assert.equal(whole.answer.error?.code, 'upstream_timeout');
  for (const modelName of ['hang', 'head-only', 'role-only', 'comments']) {
    const watch = startStopwatch();
    const { answer } = await s.ask({ stream: true }, { modelName, ...limits, timeoutMs: 20_000 });
    const error = answer.error ?? (await drain(answer.stream)).error;
    assert.equal(error?.code, 'upstream_timeout', modelName);
    assert.ok(watch.stop() < 10_000, `${modelName}: ${watch.ms()} ms`);
    assert.equal(last()?.outcome, 'timeout');
    await s.upstream.until(() => s.upstream.callsOf(modelName).at(-1)?.aborted === true);
  }
  const { answer } = await s.ask({ stream: true }, { modelName: 'some', ...limits, firstTokenTimeoutMs: 9000 });
  const drained = await drain(answer.stream);
  assert.deepEqual([drained.text, drained.error?.code, last()?.answered, last()?.estimated], ['some', 'upstream_timeout', true, true]);
});
test('a stream that keeps flowing outlives timeout_ms, and a slow reader is not its silence', async () => {
  const letters = [...'abcdefghijklmnop'];
  s.upstream.on('steady', (reply) => reply.stream([...letters.map((content) => ({ content })), 'stop'], { delayMs: 80 }));
  const limits = { timeoutMs: 1000, firstTokenTimeoutMs: 20_000 };
  const { answer } = await s.ask({ stream: true }, { modelName: 'steady', ...limits });
  assert.equal((await drain(answer.stream)).text, letters.join(''));
  const slow = await s.ask({ stream: true }, { modelName: 'steady', ...limits });
  await slow.answer.stream?.read();
  await sleep(1500);
  assert.equal((await drain(slow.answer.stream)).error, undefined);
});
test('a socket left open after [DONE] or after the finish reason does not hold the end up', async () => {
  s.upstream.on('open-done', (reply) => reply.stream([{ content: 'a' }, 'stop'], { end: false }));
  s.upstream.on('open-finish', (reply) => reply.stream([{ content: 'a' }, 'stop'], { done: false, end: false }));
  const watch = startStopwatch();
  const over: string[] = [];
  const ask = async (modelName: string): Promise<void> => {
    const { answer } = await s.ask({ stream: true }, { modelName, timeoutMs: 20_000 });
    const drained = await drain(answer.stream);
    over.push(modelName);
    assert.deepEqual([drained.text, drained.finish, drained.error], ['a', 'stop', undefined]);
    assert.equal(last()?.outcome, 'ok');
    await s.upstream.until(() => s.upstream.callsOf(modelName).at(-1)?.closedAt !== undefined);
  };
  await Promise.all([ask('open-finish'), ask('open-done')]);
  // The terminal marker may still come after a finish reason; after itself nothing is waited for.
  assert.deepEqual(over, ['open-done', 'open-finish']);
  assert.ok(watch.stop() < 10_000, `${watch.ms()} ms`);
});

test('a cancelled exchange ends the call at once, is booked as aborted, and once', async () => {
  s.upstream.on('drip', async (reply) => {
    reply.open();
    while (!reply.response.destroyed) {
      reply.bytes(toEventText({ content: '滴答' }));
      await sleep(10);
    }
  });
  s.upstream.on('quiet', (reply) => reply.stall());
  const reason = new HermesError('client_closed', 'gone');
  const streaming = await s.ask({ stream: true }, { modelName: 'drip' });
  await streaming.answer.stream?.read();
  streaming.exchange.cancel(reason);
  assert.deepEqual([streaming.exchange.calls.length, last()?.outcome, last()?.estimated], [1, 'aborted', true]);
  assert.ok((last()?.tokens.output ?? 0) > 0 && (last()?.tokens.input ?? 0) > 0);
  assert.equal((await drain(streaming.answer.stream)).error, reason);
  await streaming.answer.stream?.cancel(reason);
  assert.equal(streaming.exchange.calls.length, 1);
  for (const stream of [false, true]) {
    const exchange = s.exchange({ stream }, { modelName: 'quiet', timeoutMs: 30_000, firstTokenTimeoutMs: 30_000 });
    const before_ = s.upstream.callsOf('quiet').length;
    const answering = s.send(exchange);
    await s.upstream.until(() => s.upstream.callsOf('quiet').length > before_);
    exchange.cancel(reason);
    assert.equal((await answering).error, reason);
    assert.deepEqual([last()?.outcome, last()?.answered, last()?.estimated, last()?.tokens.input], ['aborted', false, false, 0]);
    await s.upstream.until(() => s.upstream.callsOf('quiet').at(-1)?.aborted === true);
  }
  await s.upstream.until(() => s.upstream.callsOf('drip').every((call) => call.aborted));
});
test('a cancelled read rejects with the reason although nothing comes', async () => {
  s.upstream.on('stalls', (reply) => reply.stream([{ content: 'a' }], { done: false, end: false }));
  const { exchange, answer } = await s.ask({ stream: true }, { modelName: 'stalls' });
  await answer.stream?.read();
  const reading = drain(answer.stream);
  const reason = new HermesError('superseded', 'another was faster');
  exchange.cancel(reason);
  assert.equal((await reading).error, reason);
});
test('who leaves after the finish reason has had the answer', async () => {
  s.upstream.on('tail', (reply) => reply.stream([{ content: 'all of it' }, 'stop'], { done: false, end: false }));
  const { exchange, answer } = await s.ask({ stream: true }, { modelName: 'tail' });
  while (answer.facts.finishReason === undefined) await answer.stream?.read();
  exchange.cancel(new HermesError('client_closed', 'gone'));
  assert.deepEqual([last()?.outcome, last()?.estimated, exchange.calls.length], ['ok', true, 1]);
});
test('a deadline that passes is booked as a time-out', async () => {
  s.upstream.on('late', (reply) => reply.stall());
  const exchange = s.exchange({}, { modelName: 'late' });
  const answering = s.send(exchange);
  await sleep(30);
  exchange.cancel(new HermesError('deadline_exceeded', 'too late'));
  assert.equal((await answering).error?.code, 'deadline_exceeded');
  assert.equal(last()?.outcome, 'timeout');
});

test('one event beyond server.max_event_bytes is cut: one error, a failed call', async () => {
  const config = makeConfig({ server: { max_event_bytes: 2000 } });
  s.upstream.on('endless', async (reply) => {
    reply.bytes(toEventText({ content: 'a' }), 'data: {"choices":[{"delta":{"content":"');
    while (!reply.response.destroyed) {
      reply.bytes('x'.repeat(500));
      await sleep(5);
    }
  });
  s.upstream.on('fat', (reply) => reply.json(`{"error":{"message":"${'x'.repeat(50_000)}"}}`, 500));
  const exchange = s.exchange({ stream: true }, { modelName: 'endless' }, config);
  const drained = await drain((await s.send(exchange)).stream);
  assert.deepEqual([drained.text, drained.error?.code, last()?.outcome], ['a', 'upstream_error', 'error']);
  await s.upstream.until(() => s.upstream.callsOf('endless').at(-1)?.aborted === true);
  const { error } = await s.send(s.exchange({}, { modelName: 'fat' }, config));
  assert.equal(error?.code, 'upstream_error');
  assert.ok((error?.message.length ?? 0) < 1000);
});

test('dotted tool names are mapped both ways, in JSON and in a stream', async () => {
  const tools = [{ type: 'function', function: { name: 'order.query', parameters: { type: 'object' } } }];
  s.upstream.on('tools', (reply, call) => {
    const name = call.body.tools?.[0]?.function.name ?? '';
    return reply.completion({ tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: '{"id":9007199254740993}' } }] });
  });
  const messages = [
    { role: 'user' as const, content: 'hi' },
    { role: 'assistant' as const, content: null, tool_calls: [{ id: 'c0', type: 'function', function: { name: 'order.query', arguments: '{}' } }] },
    { role: 'tool' as const, tool_call_id: 'c0', content: 'x' },
  ];
  const tool_choice = { type: 'function', function: { name: 'order.query' } };
  const { answer } = await s.ask({ messages, tools, tool_choice }, { modelName: 'tools' });
  const [call] =
    (await collect((await s.ask({ messages, tools, stream: true }, { modelName: 'tools' })).answer.stream as never)).choices[0]?.message.tool_calls ?? [];
  const whole = (answer.view as { choices: { message: { tool_calls: { function: object }[] } }[] }).choices[0]?.message.tool_calls[0];
  assert.deepEqual([whole?.function, call?.function], Array(2).fill({ name: 'order.query', arguments: '{"id":9007199254740993}' }));
  assert.equal(s.upstream.callsOf('tools').at(-1)?.body.messages[1]?.tool_calls?.[0]?.function.name, 'order__query');
});
test('a gzip answer that nobody asked for is read, streams too', async () => {
  const { gzipSync, createGzip, constants } = await import('node:zlib');
  s.upstream.on('zip', (reply, call) => {
    if (!call.body.stream) {
      const bytes = gzipSync(JSON.stringify({ id: 'x', choices: [{ index: 0, message: { role: 'assistant', content: 'zipped' }, finish_reason: 'stop' }] }));
      reply.response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bytes);
      return;
    }
    reply.response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
    const zip = createGzip({ flush: constants.Z_SYNC_FLUSH });
    zip.pipe(reply.response);
    for (const piece of [{ content: 'zip' }, { content: 'ped' }, 'stop']) zip.write(toEventText(piece));
    zip.end();
  });
  assert.equal(textOf((await s.ask({}, { modelName: 'zip' })).answer), 'zipped');
  assert.equal((await drain((await s.ask({ stream: true }, { modelName: 'zip' })).answer.stream)).text, 'zipped');
});
test('what an upstream refuses of our own doing is learned, once, and the caller sees nothing of it', async () => {
  const unsupported = (param: string, message: string) => ({ type: 'invalid_request_error', param, code: 'unsupported_parameter', message });
  s.upstream.on('picky', (reply, { body }) => {
    const { message, ...more } =
      body.stream_options != null
        ? unsupported('stream_options', 'Unknown parameter: stream_options')
        : body.max_tokens != null
          ? unsupported('max_tokens', "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
          : body.messages.some(({ role }) => role === 'developer')
            ? unsupported('messages[0].role', 'Unexpected role developer')
            : { message: '' };
    return message ? reply.error(400, message, more) : reply.completion({ content: 'fine' });
  });
  const request = {
    stream: true,
    max_tokens: 5,
    messages: [
      { role: 'developer' as const, content: 'x' },
      { role: 'user' as const, content: 'hi' },
    ],
  };
  const target = { modelName: 'picky', identity: 'identity of picky' };
  const first = await s.ask(request, target);
  assert.equal((await drain(first.answer.stream)).text, 'fine');
  assert.equal(s.upstream.callsOf('picky').length, 4);
  assert.equal((await drain((await s.ask(request, target)).answer.stream)).text, 'fine');
  assert.equal(s.upstream.callsOf('picky').length, 5);
  assert.equal(s.upstream.callsOf('picky').at(-1)?.headers.authorization, 'Bearer sk-upstream-secret');
  assert.equal(last()?.estimated, true);
});
test("a caller's own mistake teaches nothing about its upstream", async () => {
  const target = { modelName: 'strict', identity: 'identity of strict' };
  s.upstream.on('strict', (reply, { body }) => {
    if (body.broken === 'unnamed') return reply.error(400, 'Unknown field broken; known are stream_options, max_tokens', { type: 'invalid_request_error' });
    if (body.broken === 'named')
      return reply.error(400, 'Unsupported parameter broken: see stream_options', {
        type: 'invalid_request_error',
        param: 'broken',
        code: 'unsupported_parameter',
      });
    return reply.completion({ content: 'fine' });
  });
  assert.ok((await s.ask({ stream: true, broken: 'named' }, target)).answer.error);
  assert.equal(s.upstream.callsOf('strict').length, 1, 'the parameter that is named is not one of ours');
  assert.ok((await s.ask({ stream: true, broken: 'unnamed' }, target)).answer.error);
  assert.equal((await drain((await s.ask({ stream: true }, target)).answer.stream)).text, 'fine');
  assert.deepEqual(s.upstream.callsOf('strict').at(-1)?.body.stream_options, { include_usage: true });
});
test('a refusal whose words never end is known by its status', async () => {
  s.upstream.on('slow-words', (reply) => {
    reply.response.writeHead(503, { 'content-type': 'application/json' });
    reply.response.write('{"error":');
  });
  const { answer } = await s.ask({}, { modelName: 'slow-words', timeoutMs: 1000 });
  assert.deepEqual([failureOf(answer.error as HermesError)?.status, last()?.status], [503, 503]);
});
