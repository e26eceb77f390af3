import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Reply, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { PLANTED } from './guard-kit.ts';

const CARD = PLANTED.card[0];
const PHONE = PLANTED.phone[0];
const API_KEY = PLANTED.api_key[0];
const DIGITS = /4111.?1111|13812345678|Ab3dEf6/;

let upstream: FakeUpstream;
let side: http.Server;
/** What tools, webhooks and the embedding service were sent. */
const received: { path: string; body: string; headers: http.IncomingHttpHeaders }[] = [];
let answers: Record<string, unknown> = {};
const apps: RunningApp[] = [];

async function start(guards: object[], more: object = {}): Promise<RunningApp> {
  const models = ['fake'].map((id) => ({ id, provider: 'openai', model_name: id, api_base: upstream.url, api_key_env: 'FAKE_KEY' }));
  const app = await startApp({ models, guards, ...more }, { env: { FAKE_KEY: 'sk-upstream', HOOK_SECRET: 'hook-secret' } });
  apps.push(app);
  return app;
}
const sideUrl = (path: string): string => `http://127.0.0.1:${(side.address() as AddressInfo).port}${path}`;
const codeOf = (reply: Reply): unknown => [reply.status, reply.json.error?.code, reply.json.guard];
const sent = (): string => upstream.calls.map(({ raw }) => raw).join('\n');
const hits = async (app: RunningApp): Promise<string[]> =>
  (await app.fetch('/metrics')).text.split('\n').filter((line) => line.startsWith('hermes_guard_hits_total'));

before(async () => {
  upstream = await createFakeUpstream();
  side = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const path = request.url ?? '';
    received.push({ path, body, headers: request.headers });
    const answer = answers[path] ?? { ok: true };
    if (answer === 'silence') return;
    response.writeHead(answer === 'broken' ? 500 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  await new Promise<void>((done) => side.listen(0, '127.0.0.1', done));
});
after(async () => {
  for (const app of apps) await app.stop();
  await upstream.close();
  side.close();
  side.closeAllConnections();
});
beforeEach(() => {
  upstream.calls.splice(0);
  received.splice(0);
  answers = {};
  upstream.on('fake', (reply, call) => {
    const last = call.body.messages.findLast(({ role }) => role === 'user')?.content;
    return reply.completion({ content: `echo: ${typeof last === 'string' ? last : JSON.stringify(last)}` });
  });
});

let app: RunningApp;
const redacting = [
  { id: 'people', kind: 'pii', action: 'redact' },
  { id: 'keys', kind: 'secrets', action: 'redact' },
];

describe('redaction', () => {
  before(async () => {
    const tools = [
      { id: 'order.pay', endpoint: sideUrl('/pay'), side_effects: false, parameters: { type: 'object', properties: { card: { type: 'string' } } } },
    ];
    app = await start(redacting, { tools });
  });

  it('sends placeholders to the model and gives the values back, whole and streamed', async () => {
    for (const stream of [false, true]) {
      const reply = await app.chat({ model: 'fake', stream, messages: user(`Pay with ${CARD}, call ${PHONE}, key ${API_KEY}, again ${CARD}`) });
      assert.equal(saidIn(reply), `echo: Pay with ${CARD}, call ${PHONE}, key ${API_KEY}, again ${CARD}`);
      const content = String(upstream.calls.at(-1)?.body.messages[0]?.content);
      assert.equal(content, 'Pay with ⟦card_1⟧, call ⟦phone_1⟧, key ⟦api_key_1⟧, again ⟦card_1⟧');
    }
    assert.doesNotMatch(sent(), DIGITS);
  });

  it('looks everywhere in the body', async () => {
    const body = {
      model: 'fake',
      user: 'bob@example.com',
      store: true,
      metadata: { note: `card ${CARD}` },
      tools: [{ type: 'function', function: { name: 'f', description: `like ${PHONE}`, parameters: { type: 'object', properties: {} } } }],
      messages: [
        { role: 'system', content: `Never tell ${API_KEY}` },
        { role: 'user', content: [{ type: 'text', text: `I am ${PHONE}` }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: `{"card":${CARD.replaceAll(' ', '')}}` } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: `{"phone":"${PHONE}"}` },
      ],
    };
    assert.equal((await app.chat(body)).status, 200);
    assert.doesNotMatch(sent(), /4111|13812345678|Ab3dEf6|bob@/);
    const call = upstream.calls[0]?.body.messages[2]?.tool_calls?.[0];
    assert.equal(call?.id, 'c1');
    assert.match(String(JSON.parse(call?.function.arguments ?? '').card), /^⟦card_\d⟧$/);
  });

  it('leaves a body in which nothing is found as it is', async () => {
    const text = '{"model":"fake","messages":[{"role":"user","content":"order 12345,  please"}],"seed":4111111111111111}';
    await app.post('/v1/chat/completions', text);
    assert.match(sent(), /"seed":4111111111111111/);
    assert.match(sent(), /order 12345, {2}please/);
  });

  it('takes what the model says by itself out of the answer, cut at many places', async () => {
    for (const value of [CARD, PHONE, API_KEY]) {
      const text = `It is ${value}, yes.`;
      for (let cut = 1; cut < text.length; cut += 5) {
        upstream.on('fake', (reply) => reply.stream([{ role: 'assistant', content: text.slice(0, cut) }, { content: text.slice(cut) }, 'stop']));
        const reply = await app.chat({ model: 'fake', stream: true, messages: user('tell me') });
        assert.match(saidIn(reply), /^It is ⟦\w+_1⟧, yes\.$/, `cut at ${cut}: ${saidIn(reply)}`);
        assert.match(reply.text, /"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/s);
      }
    }
  });

  it('never lets a value reach the model or get lost, cut at many places on its way back', async () => {
    const text = 'Card ⟦card_1⟧ is charged.';
    for (let cut = 1; cut < text.length; cut += 4) {
      upstream.on('fake', (reply) => reply.stream([{ content: text.slice(0, cut) }, { content: text.slice(cut) }, 'stop']));
      assert.equal(saidIn(await app.chat({ model: 'fake', stream: true, messages: user(`charge ${CARD}`) })), `Card ${CARD} is charged.`);
    }
    assert.doesNotMatch(sent(), DIGITS);
  });

  it('gives tools the values, and the model none of what they answer', async () => {
    answers['/pay'] = { paid: true, phone: PHONE };
    upstream.on('fake', (reply, { body }) =>
      body.messages.at(-1)?.role === 'tool'
        ? reply.completion({ content: `paid, call ${String(/⟦phone_\d⟧/.exec(String(body.messages.at(-1)?.content))?.[0])}` })
        : reply.completion({
            tool_calls: [{ id: 'c1', type: 'function', function: { name: body.tools?.[0]?.function.name ?? '', arguments: '{"card":"⟦card_1⟧"}' } }],
          }),
    );
    for (const stream of [false, true]) {
      const reply = await app.chat({ model: 'fake', stream, tools: ['order.pay'], messages: user(`pay with ${CARD}`) });
      assert.equal(saidIn(reply), `paid, call ${PHONE}`);
    }
    assert.deepEqual(
      received.map(({ body }) => JSON.parse(body).params),
      [{ card: CARD }, { card: CARD }],
    );
    assert.doesNotMatch(sent(), DIGITS);
  });
});

describe('redaction and what stands around it', () => {
  it('keeps sessions as they were said', async () => {
    await app.chat({ model: 'fake', session_id: 's', messages: user(`I am ${PHONE}`) });
    const reply = await app.chat({ model: 'fake', session_id: 's', messages: user(`and ${PLANTED.phone[4]}`) });
    assert.equal(saidIn(reply), `echo: and ${PLANTED.phone[4]}`);
    assert.deepEqual(
      upstream.calls.at(-1)?.body.messages.map(({ content }) => content),
      ['I am ⟦phone_1⟧', 'echo: I am ⟦phone_1⟧', 'and ⟦phone_2⟧'],
    );
    assert.match((await app.fetch('/admin/sessions/s?project=default')).text, new RegExp(PHONE));
  });

  it('does not take what a caller wrote for its own placeholders', async () => {
    const reply = await app.chat({ model: 'fake', messages: user(`⟦card_1⟧ and ${CARD}`) });
    assert.match(String(upstream.calls[0]?.body.messages[0]?.content), /^⟦card_1⟧ and ⟦card_2⟧$/);
    assert.equal(saidIn(reply), `echo: ⟦card_1⟧ and ${CARD}`);
  });

  it('holds for the other doors too', async () => {
    const message = await app.post('/v1/messages', { model: 'fake', max_tokens: 50, system: `key ${API_KEY}`, messages: user(`card ${CARD}`) });
    assert.match(message.text, new RegExp(`echo: card ${CARD}`));
    const response = await app.post('/v1/responses', { model: 'fake', input: `card ${CARD}`, stream: true });
    assert.match(response.text, new RegExp(`echo: card ${CARD}`));
    assert.equal(upstream.calls.length, 2);
    assert.doesNotMatch(sent(), DIGITS);
  });

  it('tells what it did, and never what it found', async () => {
    await app.chat({ model: 'fake', messages: user(`card ${CARD}`) });
    assert.ok((await hits(app)).some((line) => line.includes('guard="people",action="redact"')));
    const line = app.lines.find(({ guard }) => guard === 'people');
    assert.deepEqual([line?.direction, line?.action, line?.found], ['input', 'redact', ['card']]);
    assert.doesNotMatch(JSON.stringify(app.lines), DIGITS);
  });

  it('goes before what an embedding service is asked', async () => {
    answers['/embeddings'] = { data: [{ embedding: [1, 0] }] };
    const asking = await start(redacting, {
      embedding: { provider: 'service', model_name: 'near', timeout_ms: 2000 },
      providers: { service: { type: 'openai', api_base: sideUrl(''), api_key_env: 'FAKE_KEY' } },
      route_rules: [{ id: 'near', match: { embedding: { examples: ['pay'], min_score: 0.5 } }, model: 'fake' }],
    });
    await asking.chat({ messages: user(`pay with ${CARD}`) });
    assert.ok(
      received.some(({ body }) => body.includes('pay with ⟦card⟧')),
      JSON.stringify(received),
    );
    assert.doesNotMatch(JSON.stringify(received), DIGITS);
  });
});

describe('redaction of what fails', () => {
  it('gives back what an upstream quotes, and takes out what it says by itself, whole, in a stream and beside a degraded answer', async () => {
    const models = ['fake', 'second'].map((id) => ({ id, provider: 'openai', model_name: id, api_base: upstream.url, api_key_env: 'FAKE_KEY' }));
    const pair = { id: 'pair', failover: { upstreams: [{ target: 'fake' }], fallback_target: 'second', max_attempts: 1 } };
    const failing = await start(redacting, { models: [...models, pair] });
    const quoted = (call: { body: { messages: { content?: unknown }[] } }): string => `no ${String(call.body.messages.at(-1)?.content)}, ask ${PHONE}`;
    const wanted = new RegExp(`no card ${CARD}, ask ⟦phone_1⟧`);
    upstream.on('fake', (reply, call) => reply.error(400, quoted(call), { type: 'invalid_request_error' }));
    const whole = await failing.chat({ model: 'fake', messages: user(`card ${CARD}`) });
    assert.deepEqual([whole.status, whole.json.error?.type], [400, 'invalid_request_error']);
    assert.match(String(whole.json.error?.message), wanted);
    upstream.on('fake', (reply, call) => reply.stream([{ content: 'so' }, { error: { message: quoted(call), type: 'server_error' } }]));
    const streamed = await failing.chat({ model: 'fake', stream: true, messages: user(`card ${CARD}`) });
    assert.match(streamed.text, /"error"/);
    assert.doesNotMatch(streamed.text, new RegExp(PHONE));
    upstream.on('fake', (reply, call) => reply.error(500, quoted(call)));
    upstream.on('second', (reply) => reply.completion({ content: 'well' }));
    const degraded = await failing.chat({ model: 'pair', messages: user(`card ${CARD}`) });
    assert.match(JSON.stringify(degraded.json.original), wanted);
    assert.doesNotMatch(sent(), new RegExp(CARD));
  });

  it('does not refuse for what a failure says', async () => {
    const blocking = await start([{ id: 'people', kind: 'pii', apply: ['output'] }]);
    upstream.on('fake', (reply) => reply.error(400, `ask ${PHONE}`, { type: 'invalid_request_error' }));
    const { status, json } = await blocking.chat({ model: 'fake', messages: user('hi') });
    assert.deepEqual([status, json.error?.message], [400, 'ask ⟦phone_1⟧']);
  });
});

describe('redaction and the cache by meaning', () => {
  it('never answers about one with what was said about another', async () => {
    answers['/embeddings'] = { data: [{ embedding: [1, 0] }] };
    const guards = [...redacting, { id: 'names', kind: 'block_list', words: ['Tiger', 'Lion'], action: 'redact' }];
    const asking = await start(guards, {
      cache: { semantic: { enabled: true } },
      embedding: { provider: 'service', model_name: 'near', timeout_ms: 2000 },
      providers: { service: { type: 'openai', api_base: sideUrl(''), api_key_env: 'FAKE_KEY' } },
    });
    const ask = (words: string) => asking.chat({ temperature: 0, messages: user(words) });
    const questions = [
      'which plan has jane.doe@example.com?',
      'which plan has rob.roe@example.org?',
      'who leads tiger?',
      'who leads lion?',
      `who has ${API_KEY}?`,
    ];
    for (const words of questions) assert.equal(saidIn(await ask(words)), `echo: ${words}`);
    assert.equal((await ask('who leads tiger now?')).headers.get('x-hermes-cache'), 'hit');
    assert.doesNotMatch(JSON.stringify(received), /jane|rob|tiger|lion/);
  });
});

describe('refusals and flags', () => {
  it('refuse with the guard named, before the model is asked, and say nothing of what was found', async () => {
    const app = await start([
      { id: 'no-keys', kind: 'secrets' },
      { id: 'no-words', kind: 'block_list', words: ['Project Tiger', '内部代号'] },
    ]);
    for (const [text, guard] of [
      [API_KEY, 'no-keys'],
      ['about PROJECT  tiger', 'no-words'],
      ['那个内部代号是', 'no-words'],
    ] as const) {
      const reply = await app.chat({ model: 'fake', messages: user(text) });
      assert.deepEqual(codeOf(reply), [400, 'content_policy_violation', guard]);
      assert.doesNotMatch(reply.text, /Ab3dEf6|tiger|内部/i);
      assert.match(String(reply.json.error?.message), /rephrase it, or leave that part out/);
    }
    assert.equal(upstream.calls.length, 0);
    assert.equal((await app.chat({ model: 'fake', messages: user('projects of tigers') })).status, 200);
  });

  it('break a stream off before any of it has passed', async () => {
    const app = await start([{ id: 'out', kind: 'block_list', words: ['project tiger'], apply: ['output'] }]);
    const text = 'We call it Project Tiger here.';
    for (let cut = 1; cut < text.length; cut += 6) {
      upstream.on('fake', (reply) => reply.stream([{ content: text.slice(0, cut) }, { content: text.slice(cut) }, 'stop']));
      const reply = await app.chat({ model: 'fake', stream: true, messages: user('project tiger?') });
      assert.match(reply.text, /content_policy_violation/);
      assert.doesNotMatch(saidIn({ ...reply, text: reply.text.replace(/data: \{"error".*\n\n/, '') }), /proj/i);
      assert.doesNotMatch(reply.text, /DONE/);
    }
    upstream.on('fake', (reply) => reply.completion({ content: text }));
    assert.deepEqual(codeOf(await app.chat({ model: 'fake', messages: user('hi') })), [400, 'content_policy_violation', 'out']);
  });

  it('only tell where they flag', async () => {
    const app = await start([{ id: 'seen', kind: 'pii', detect: ['card'], action: 'flag' }]);
    const reply = await app.chat({ model: 'fake', messages: user(`card ${CARD}, phone ${PHONE}`) });
    assert.deepEqual([reply.headers.get('x-hermes-guard'), saidIn(reply)], ['seen', `echo: card ${CARD}, phone ${PHONE}`]);
    assert.match(sent(), new RegExp(CARD));
    assert.equal((await app.chat({ model: 'fake', messages: user(PHONE) })).headers.get('x-hermes-guard'), null);
    assert.equal((await hits(app)).length, 1);
  });
});

describe('webhook guards', () => {
  const hook = (more: object = {}): object => ({ id: 'judge', kind: 'webhook', url: sideUrl('/judge'), timeout_ms: 300, apply: ['input'], ...more });

  it('post the text, signed, and obey the verdict', async () => {
    const app = await start([{ id: 'people', kind: 'pii', action: 'redact' }, hook({ secret_env: 'HOOK_SECRET' })]);
    for (const [verdict, status] of [
      [{ verdict: 'allow' }, 200],
      [{ allow: true }, 200],
      [{ verdict: 'block' }, 400],
      [{ flagged: true }, 400],
    ] as const) {
      answers['/judge'] = verdict;
      assert.equal((await app.chat({ model: 'fake', messages: user(`judge ${CARD}`) })).status, status, JSON.stringify(verdict));
    }
    const asked = received[0];
    assert.match(String(asked?.headers['x-hermes-signature']), /^v1=[0-9a-f]{64}$/);
    const { text, direction, guard } = JSON.parse(asked?.body ?? '');
    assert.deepEqual([text, direction, guard], ['judge ⟦card_1⟧', 'input', 'judge']);
    answers['/judge'] = { verdict: 'flag' };
    assert.equal((await app.chat({ model: 'fake', messages: user('hm') })).headers.get('x-hermes-guard'), 'judge');
  });

  it('let nothing pass when they are broken, unless they may', async () => {
    const [strict, lax] = [await start([hook()]), await start([hook({ on_error: 'allow' })])];
    for (const answer of ['broken', 'silence', { what: 'else' }]) {
      answers['/judge'] = answer;
      assert.deepEqual(codeOf(await strict.chat({ model: 'fake', messages: user('hi') })), [503, 'guard_failed', 'judge']);
    }
    assert.equal(upstream.calls.length, 0);
    assert.equal((await lax.chat({ model: 'fake', messages: user('hi') })).status, 200);
  });

  it('judge an answer as a whole before any of it is sent', async () => {
    const app = await start([hook({ apply: ['output'] })]);
    for (const stream of [false, true]) {
      answers['/judge'] = { verdict: 'allow' };
      assert.equal(saidIn(await app.chat({ model: 'fake', stream, messages: user('hi') })), 'echo: hi');
      answers['/judge'] = { verdict: 'block' };
      const reply = await app.chat({ model: 'fake', stream, messages: user('hi') });
      assert.deepEqual(codeOf(reply), [400, 'content_policy_violation', 'judge']);
    }
    assert.equal(JSON.parse(received[0]?.body ?? '').text, 'echo: hi');
  });

  it('hold no more of a stream than one event may have', async () => {
    const app = await start([hook({ apply: ['output'] })], { server: { max_event_bytes: 1024 } });
    upstream.on('fake', (reply) =>
      reply.stream([{ role: 'assistant', content: '' }, ...Array.from({ length: 20 }, () => ({ content: 'x'.repeat(100) })), 'stop']),
    );
    const reply = await app.chat({ model: 'fake', stream: true, messages: user('hi') });
    assert.match(reply.text, /"overloaded"/);
    assert.equal(received.length, 0);
  });
});

describe('size guards', () => {
  it('refuse a prompt that is too long', async () => {
    const app = await start([
      { id: 'chars', kind: 'prompt_size', max_characters: 100 },
      { id: 'tokens', kind: 'prompt_size', max_tokens: 30, action: 'flag' },
    ]);
    const refused = await app.chat({ model: 'fake', messages: user('x'.repeat(101)) });
    assert.deepEqual(codeOf(refused), [400, 'content_policy_violation', 'chars']);
    assert.match(String(refused.json.error?.message), /101 characters, and 100 are the most; shorten it/);
    const reply = await app.chat({ model: 'fake', messages: user('a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9') });
    assert.deepEqual([reply.status, reply.headers.get('x-hermes-guard')], [200, 'tokens']);
  });

  it('refuse an answer that is too long, or cut it off', async () => {
    const [block, cut] = [
      await start([{ id: 'long', kind: 'output_size', max_characters: 10 }]),
      await start([{ id: 'long', kind: 'output_size', max_characters: 10, action: 'redact' }]),
    ];
    for (const stream of [false, true]) {
      const refused = await block.chat({ model: 'fake', stream, messages: user('a long answer') });
      assert.match(refused.text, /content_policy_violation/);
      assert.match(refused.text, /10 characters are the most; ask for a shorter one/);
      const reply = await cut.chat({ model: 'fake', stream, messages: user('a long answer') });
      assert.equal(saidIn(reply), 'echo: a lo');
      assert.match(reply.text, /"finish_reason":"length"/);
    }
  });
});
