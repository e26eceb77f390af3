import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEY, type Reply, startApp, user } from '../app-kit.ts';
import { bare, createRaw, DONE, event, type Field, messageEnd, messageStart, named, openField, piece, sse, textBlock, toldIn } from './field-kit.ts';

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const ROLE = event(piece({ role: 'assistant', content: '' }));
const WORDS = event(piece({ content: 'Hi ' })) + event(piece({ content: 'you' }));
const FINISH = event(piece({}, 'stop'));

let field: Field;
before(async () => {
  field = await openField({ openai: ['m'], anthropic: ['claude'] });
});
after(() => field.close());

const streamed = (model: string, more: object = {}): Promise<Reply> =>
  field.app.chat({ model, stream: true, messages: user('hi'), ...more }, { 'x-hermes-verbose': '1' });
const say = (model: string, ...pieces: (string | Buffer)[]): void => void field.raw.answers.set(model, sse(pieces));

test('field report 1: no space after the colon: text, usage, finish reason and the end are seen, by the books too', async () => {
  const spaceless = (text: string): string => text.replaceAll('data: ', 'data:').replaceAll('event: ', 'event:');
  say('m', spaceless(ROLE + WORDS + FINISH + event(bare({ usage: USAGE })) + DONE));
  say('claude', spaceless(named(messageStart({ input_tokens: 10, output_tokens: 1 }), ...textBlock('Hi ', 'you'), ...messageEnd({ output_tokens: 5 }))));
  for (const model of ['m', 'claude']) {
    const { text, finish, done, hermes } = toldIn(await streamed(model));
    assert.deepEqual(
      [text, finish, done, hermes?.tokens],
      ['Hi you', ['stop'], true, { input: 10, cached: 0, output: 5, reasoning: 0, estimated: false }],
      model,
    );
  }
});

describe('field report 2: comments', () => {
  test('of the upstream never become data', async () => {
    say('m', `: PROCESSING\n\n${ROLE}: PROCESSING\n\n${WORDS}:\n\n${FINISH}${DONE}`);
    const reply = await streamed('m');
    assert.deepEqual([toldIn(reply).text, toldIn(reply).done], ['Hi you', true]);
    for (const line of reply.text.split('\n')) assert.match(line, /^(?:$|:|data: )/);
  });

  for (const heartbeat_ms of [25, 0])
    test(`of our own stand at event boundaries, without an id${heartbeat_ms === 0 ? '; switched off there are none' : ''}`, async () => {
      const beating = await openField({ openai: ['m'] }, { server: { heartbeat_ms } });
      try {
        const words = event(piece({ content: 'Hi you' }));
        beating.raw.answers.set('m', async (response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.flushHeaders();
          await sleep(80);
          response.write(ROLE + words.slice(0, 40));
          await sleep(80);
          response.end(words.slice(40) + FINISH + DONE);
        });
        const reply = await beating.app.chat({ model: 'm', stream: true, messages: user('hi') });
        assert.deepEqual([toldIn(reply).text, toldIn(reply).done], ['Hi you', true]);
        assert.equal(/^:/m.test(reply.text), heartbeat_ms > 0);
        assert.doesNotMatch(reply.text, /^(?:id|event|retry):/m);
        for (const block of reply.text.split('\n\n')) if (block.startsWith('data: {')) JSON.parse(block.slice(6));
      } finally {
        await beating.close();
      }
    });
});

describe('field report 3: how a stream ends', () => {
  const CALL = event(piece({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"a"' } }] }));
  const stored = async (session: string): Promise<number> => (await field.app.fetch(`/admin/sessions/${session}`)).status;
  for (const [what, pieces, cut] of [
    ['a: closed after some text', ROLE + WORDS, true],
    ['a: ended after some text', ROLE + WORDS, false],
    ["b: closed inside a tool call's arguments", ROLE + CALL, true],
    ['e: an error object, then close', `${ROLE}${WORDS}${event({ error: { message: 'overloaded', type: 'server_error' } })}`, false],
  ] as const)
    test(`${what}: exactly one error, a failed call, nothing stored`, async () => {
      field.raw.answers.set('m', sse([pieces], { cut }));
      const session_id = what.replaceAll(/\W/g, '-');
      const { errors, done, finish } = toldIn(await streamed('m', { session_id }));
      assert.deepEqual([errors.length, done, finish], [1, false, []]);
      assert.equal(await stored(session_id), 404);
      assert.match((await field.app.fetch('/metrics')).text, /hermes_upstream_attempts_total\{upstream="m",outcome="error"\} [1-9]/);
    });
  for (const [what, pieces] of [
    ['c: finish reason and close without [DONE]', ROLE + WORDS + FINISH],
    ['d: [DONE] without any finish reason', ROLE + WORDS + DONE],
  ] as const)
    test(`${what}: complete`, async () => {
      say('m', pieces);
      const session_id = what.replaceAll(/\W/g, '-');
      const { errors, done, finish, text } = toldIn(await streamed('m', { session_id }));
      assert.deepEqual([errors, done, finish, text], [[], true, ['stop'], 'Hi you']);
      assert.equal(await stored(session_id), 200);
    });
});

test('field report 4: empty choices with filter data, a choice without delta, empty id and model, usage on an empty-choices chunk', async () => {
  say(
    'm',
    event({ id: '', model: '', object: '', created: 0, choices: [], prompt_filter_results: [{ prompt_index: 0 }] }),
    event({ ...piece({}), choices: [{ index: 0, finish_reason: null }] }),
    ROLE + WORDS + FINISH,
    event(bare({ usage: USAGE })),
    DONE,
  );
  const reply = await streamed('m', { stream_options: { include_usage: true } });
  const { text, finish, done, usage } = toldIn(reply);
  assert.deepEqual([text, finish, done, usage], ['Hi you', ['stop'], true, USAGE]);
  assert.match(reply.text, /prompt_filter_results/);
});

test('field report 5: cut at every byte, whatever ends a line, with a BOM and data of several lines', async () => {
  const text = '世界 🎉 é';
  const whole = ROLE + event(piece({ content: text })) + FINISH + DONE;
  // Not within a string: there a line end would be none.
  const lines = whole.replace('"choices":', '\ndata: "choices":');
  for (const [what, bytes] of [
    ['LF', whole],
    ['CRLF', whole.replaceAll('\n', '\r\n')],
    ['CR', whole.replaceAll('\n', '\r')],
    ['a BOM', `\ufeff${whole}`],
    ['several lines', lines],
  ] as const) {
    field.raw.answers.set('m', async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const byte of Buffer.from(bytes)) {
        response.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      response.end();
    });
    const told = toldIn(await streamed('m'));
    assert.deepEqual([told.text, told.finish, told.done], [text, ['stop'], true], what);
  }
});

test('field report 6: a client that reads nothing: the upstream is held back, and a write limit ends it', async () => {
  const slow = await openField({ openai: ['flood'] }, { server: { write_timeout_ms: 300 } });
  const MB = 1_048_576;
  let written = 0;
  let closed = false;
  slow.raw.answers.set('flood', async (response) => {
    response.on('close', () => (closed = true));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const block = event(piece({ content: 'x'.repeat(1000) })).repeat(64);
    while (!closed && written < 200 * MB) {
      written += block.length;
      if (!response.write(block)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
  });
  const socket = net.connect(slow.app.app.port, '127.0.0.1');
  try {
    const body = JSON.stringify({ model: 'flood', stream: true, messages: user('hi') });
    socket.on('error', () => undefined).pause();
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    for (const end = performance.now() + 8000; !closed; await sleep(20)) assert.ok(performance.now() < end, 'never ended');
    assert.ok(written < 60 * MB, `${Math.round(written / MB)} MB were taken from the upstream`);
  } finally {
    socket.destroy();
    await slow.close();
  }
});

describe('field report 7: failover before the client has seen content', () => {
  const overloaded = { error: { message: 'overloaded', type: 'server_error' } };
  const target = (model: string, provider: string, raw: string) => ({
    id: model,
    provider,
    model_name: model,
    api_base: provider === 'openai' ? `${raw}/v1` : raw,
    api_key_env: 'UP_KEY',
  });
  const failing = async (
    bad: (response: ServerResponse) => void | Promise<void>,
    provider = 'openai',
    server: object = {},
  ): Promise<{ reply: Reply; states: { id: string; consecutive_failures: number }[] }> => {
    const raw = await createRaw();
    raw.answers.set('bad', bad);
    raw.answers.set('good', sse([ROLE + WORDS + FINISH + DONE]));
    const app = await startApp(
      {
        server,
        models: [
          { id: 'pair', failover: { strategy: 'priority', upstreams: [{ target: 'bad' }, { target: 'good' }], max_attempts: 2 } },
          target('bad', provider, raw.url),
          target('good', 'openai', raw.url),
        ],
      },
      { env: { UP_KEY: 'sk-up' } },
    );
    try {
      const reply = await app.chat({ model: 'pair', stream: true, messages: user('hi') });
      const { data } = (await app.fetch('/admin/upstreams')).json as unknown as { data: { id: string; consecutive_failures: number }[] };
      return { reply, states: data };
    } finally {
      await app.stop();
      await raw.close();
    }
  };
  for (const [what, bad, provider] of [
    ['a role-only chunk, then an error object', sse([ROLE, event(overloaded)]), 'openai'],
    ['an error as the very first event', sse([event(overloaded)]), 'openai'],
    [
      'message_start, ping, then overloaded_error',
      sse([
        named(
          messageStart({ input_tokens: 1, output_tokens: 1 }),
          { type: 'ping' },
          { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
        ),
      ]),
      'anthropic',
    ],
  ] as const)
    test(`${what}: moves on unseen, and counts against the first`, async () => {
      const { reply, states } = await failing(bad, provider);
      const told = toldIn(reply);
      assert.deepEqual([told.text, told.errors, told.done, reply.text.match(/"role":"assistant"/g)?.length], ['Hi you', [], true, 1]);
      assert.equal(states.find(({ id }) => id === 'bad')?.consecutive_failures, 1);
    });

  test('after content: one error, never a second answer spliced on', async () => {
    const { reply } = await failing(sse([ROLE, event(piece({ content: 'half' })), event(overloaded)]));
    const told = toldIn(reply);
    assert.deepEqual([told.text, told.errors.length, told.done], ['half', 1, false]);
  });

  test('after a heartbeat has committed the 200, failover is still invisible', async () => {
    const bad = async (response: ServerResponse): Promise<void> => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(ROLE);
      await sleep(120);
      response.end(event(overloaded));
    };
    const { reply } = await failing(bad, 'openai', { heartbeat_ms: 30 });
    assert.match(reply.text, /^:/);
    const told = toldIn(reply);
    assert.deepEqual([told.text, told.errors, told.done], ['Hi you', [], true]);
  });
});
