import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

let openai: FakeUpstream;
let anthropic: FakeAnthropic;
let app: RunningApp;

const models = () => [
  { id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: openai.url, api_key_env: 'UP_KEY' },
  { id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: anthropic.url, api_key_env: 'ANT_KEY', max_tokens: 4000 },
];
const env = { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' };

before(async () => {
  openai = await createFakeUpstream();
  anthropic = await createFakeAnthropic(() => [{ type: 'text', text: 'ok' }]);
  app = await startApp({ models: models(), default_model: 'gpt' }, { env });
});
after(async () => {
  await app.stop();
  await Promise.all([openai.close(), anthropic.close()]);
});

/** As no serialiser of ours would write it: spaces, numbers, escapes, members in an order that objects do not keep. */
const MESSAGES = `[ {"content":"caf\\u00e9 \\/ 9007199254740993","role":"user"},
  {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\\"id\\": 9007199254740993}"}}]},
  {"role":"tool","tool_call_id":"call_1","content":"1.0"}]`;
const TOOLS = '[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"10":{"maximum":1.0},"2":{"maximum":1e3}}}}}]';

describe('an OpenAI client in front of an OpenAI upstream', () => {
  test('sends its bytes: only the model, our fields and stream_options are others', async () => {
    const body = `{"session_ids":[1.0], "model":"gpt","temperature":1.0,"messages":${MESSAGES},"tools":${TOOLS},"user_level":"vip","seed":12345678901234567890,"x":{"2":1,"1":[ ]} }`;
    assert.equal((await app.post('/v1/chat/completions', body)).status, 200);
    assert.equal(openai.calls.at(-1)?.raw, body.replace('"gpt"', '"gpt-fake"').replace('"user_level":"vip",', ''));
    const streamed = `{"stream":true,"model":"gpt","messages":${MESSAGES},"tools":${TOOLS}}`;
    assert.equal((await app.post('/v1/chat/completions', streamed)).status, 200);
    assert.equal(openai.calls.at(-1)?.raw, `${streamed.replace('"gpt"', '"gpt-fake"').slice(0, -1)},"stream_options":{"include_usage":true}}`);
  });

  test('in a session what it sends now stays as it is, behind the history', async () => {
    const turn = (text: string): string => `{"session_id":"s-bytes","model":"gpt","temperature":1.0,"messages":[{"content":"${text}" ,"role":"user"}]}`;
    await app.post('/v1/chat/completions', turn('one'));
    await app.post('/v1/chat/completions', turn('tw\\u006f'));
    assert.equal(
      openai.calls.at(-1)?.raw,
      '{"model":"gpt-fake","temperature":1.0,"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"echo: one"},{"content":"tw\\u006f" ,"role":"user"}]}'.replace(
        '{"role":"user","content":"one"}',
        '{"content":"one","role":"user"}',
      ),
    );
  });

  test('gets the bytes of its answer as they came, whole and streamed', async () => {
    const head = '"id":"c-1" , "model":"gpt-fake-2","created":1790000000.0,"trace":9007199254740993,"x_vendor":{"2":1e3,"1":[ ]}';
    const whole = `{ "object":"chat.completion",${head},"choices":[{"index":0,"message":{"role":"assistant","content":"caf\\u00e9 \\/","extra":1.0},"finish_reason":"stop"}],
  "usage":{"total_tokens":3,"prompt_tokens":2,"completion_tokens":1} }`;
    const chunk = (rest: string): string => `data:{${head},"object":"chat.completion.chunk",${rest}}\n\n`;
    const stream = [
      chunk('"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aX"'),
      chunk('"choices":[{"delta":{"content":"caf\\u00e9 \\/"},"index":0,"finish_reason":null}],"usage":null'),
      chunk('"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null'),
      chunk('"choices":[ ],"usage":{"total_tokens":3,"prompt_tokens":2,"completion_tokens":1}'),
      'data: [DONE]\n\n',
    ].join('');
    openai.on(
      'gpt-fake',
      ({ response }, { body }) =>
        void response.writeHead(200, { 'content-type': body.stream ? 'text/event-stream' : 'application/json' }).end(body.stream ? stream : whole),
    );
    const ask = { model: 'gpt', messages: [{ role: 'user', content: 'x' }] };
    assert.equal((await app.chat(ask)).text, whole);
    assert.equal((await app.chat({ ...ask, stream: true, stream_options: { include_usage: true } })).text, stream);
  });

  test("what a user's plugin changes in place arrives changed, the rest as it was", async () => {
    const plugin = `export default { name: 'redact', handle(exchange, next) { const last = exchange.request.messages.at(-1); last.content = last.content.replace('secret', '***'); return next(); } };`;
    const touched = await startApp({ models: models(), default_model: 'gpt' }, { env, files: { 'redact.mjs': plugin } });
    try {
      const body =
        '{"model":"gpt","temperature":1.0,"messages":[{"role":"user" ,"content":"a"},{"role":"assistant" ,"content":"b"},{"role":"user" ,"content":"my secret"}]}';
      assert.equal((await touched.post('/v1/chat/completions', body)).status, 200);
      assert.equal(openai.calls.at(-1)?.raw, body.replace('"gpt"', '"gpt-fake"').replace('"user" ,"content":"my secret"', '"user","content":"my ***"'));
    } finally {
      await touched.stop();
    }
  });
});

describe('an Anthropic client in front of an Anthropic upstream', () => {
  const CONTENT = `[{"type":"text", "text":"caf\\u00e9","cache_control":{"type":"ephemeral","ttl":"1h"}}]`;
  const send = (body: string, headers: Record<string, string> = {}) => app.post('/v1/messages', body, headers);

  test('sends its bytes: only the model, the ceiling of max_tokens and our fields are others', async () => {
    const body = `{ "user_level":"vip", "model":"claude","max_tokens":99999,"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],
 "messages":[{"role":"user","content":${CONTENT}},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{"id":9007199254740993,"x":1.0}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"done"},{"text":"go on","type":"text"}]}],
 "tools":[{"name":"look","input_schema":{"type":"object","properties":{"10":{},"2":{"maximum":1.0}}}}], "temperature":1.0, "metadata":{"user_id":"u"} }`;
    assert.equal((await send(body)).status, 200);
    const expected = body.replace('{ "user_level":"vip", ', '{').replace('"claude"', '"claude-sonnet-4-5"').replace('99999', '4000');
    assert.equal(anthropic.calls.at(-1)?.raw, expected);
  });

  test('strings stay strings, and what the API would refuse is mended all the same', async () => {
    const good = '{"model":"claude","max_tokens":10,"system":"Be kind.","messages":[{"role":"user","content":"hi"}]}';
    await send(good);
    assert.equal(anthropic.calls.at(-1)?.raw, good.replace('"claude"', '"claude-sonnet-4-5"'));
    const blank = '{"model":"claude","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":"hi"}]}]}';
    assert.equal((await send(blank)).status, 200);
    assert.deepEqual(anthropic.calls.at(-1)?.body.messages, [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]);
  });
});

describe('rate limits of the upstream', () => {
  test('are told where hermes has none of its own', async () => {
    const headers = {
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-remaining-project-tokens': '7',
      'openai-processing-ms': '12',
      'openai-organization': 'secret-org',
    };
    openai.on('gpt-fake', (reply) => {
      for (const [name, value] of Object.entries(headers)) reply.response.setHeader(name, value);
      return reply.completion({ content: 'x' });
    });
    const ask = async (hermes: RunningApp): Promise<Headers> => (await hermes.chat({ model: 'gpt', messages: [{ role: 'user', content: 'x' }] })).headers;
    const seen = await ask(app);
    for (const name of Object.keys(headers)) assert.equal(seen.get(name), name === 'openai-organization' ? null : Reflect.get(headers, name), name);
    const limited = await startApp({ models: models(), default_model: 'gpt', limits: [{ per: 'service', requests_per_minute: 60 }] }, { env });
    try {
      const own = await ask(limited);
      assert.equal(own.get('x-ratelimit-limit-requests'), '60');
      assert.equal(own.get('x-ratelimit-remaining-project-tokens'), null);
    } finally {
      await limited.stop();
    }
  });
});

describe('what a key may reach', () => {
  test('count_tokens of a model that it may not use, or that does not exist, is refused as its chat would be', async () => {
    const restricted = await startApp(
      { models: models(), default_model: 'gpt', auth: { keys: [{ id: 'narrow', key_env: 'NARROW', service: 's', models: ['gpt'] }] } },
      { env: { ...env, NARROW: 'sk-narrow-0123456789abcdef' } },
    );
    try {
      const count = (model: string) =>
        restricted.post(
          '/v1/messages/count_tokens',
          { model, messages: [{ role: 'user', content: 'x' }] },
          { authorization: 'Bearer sk-narrow-0123456789abcdef' },
        );
      assert.equal((await count('gpt')).status, 200);
      const refused = await count('claude');
      assert.deepEqual([refused.status, refused.json.error?.type], [403, 'permission_error']);
      assert.equal((await count('nope')).status, 404);
    } finally {
      await restricted.stop();
    }
  });

  test("a response of hermes' own is asked of no vendor", async () => {
    const { id } = (await app.post('/v1/responses', { model: 'gpt', input: 'hi' })).json;
    const calls = openai.calls.length;
    const asked: [number, string | null | undefined][] = [];
    for (const method of ['GET', 'DELETE', 'GET', 'DELETE']) {
      const { status, json } = await app.fetch(`/v1/responses/${id}`, { method });
      asked.push([status, json.error?.code]);
    }
    assert.deepEqual(asked, [
      [200, undefined],
      [200, undefined],
      [404, 'not_found'],
      [404, 'not_found'],
    ]);
    assert.equal(openai.calls.length, calls);
  });

  test('responses that the vendor keeps are not among the stateless paths', async () => {
    const keys = [
      { id: 'plain', key_env: 'PLAIN', service: 's' },
      { id: 'listed', key_env: 'LISTED', service: 's', passthrough: ['/v1/responses'] },
    ];
    const secrets = { PLAIN: 'sk-plain-0123456789abcdef', LISTED: 'sk-listed-0123456789abcdef' };
    const proxied = await startApp(
      {
        models: models(),
        default_model: 'gpt',
        auth: { keys },
        providers: { up: { type: 'openai', api_base: openai.url, api_key_env: 'UP_KEY' } },
        passthrough: { upstream: 'up', responses: true },
      },
      { env: { ...env, ...secrets } },
    );
    try {
      const status = async (key: string, path: string, method = 'GET'): Promise<number> =>
        (await proxied.fetch(path, { method, headers: { authorization: `Bearer ${key}` } })).status;
      for (const method of ['GET', 'DELETE']) assert.equal(await status(secrets.PLAIN, '/v1/responses/resp_1', method), 403, method);
      assert.equal(await status(secrets.PLAIN, '/v1/responses/resp_1/input_items'), 403);
      // The fake takes no GET: it was asked.
      for (const key of [secrets.LISTED, KEY]) assert.equal(await status(key, '/v1/responses/resp_1'), 405, key);
    } finally {
      await proxied.stop();
    }
  });
});
