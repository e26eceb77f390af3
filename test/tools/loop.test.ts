import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { call, clientTool, deltas, type Instance, instance, type Model, results, type Toolbox, toolbox, toolOf, until, user } from './tools-kit.ts';

let box: Toolbox;
let here: Instance;
let model: Model = () => 'well';
/** Until when the slow tools are at work. */
let allOfRound = (): Promise<unknown> => Promise.resolve();
const all = ['order.query', 'slow.one', 'slow.two', 'plain', 'signed', 'bad.status', 'bad.hang', 'bad.gone', 'vip.only'];
/** The model calls these, a round each, and then says `done`. */
const plan =
  (...rounds: ReturnType<typeof call>[][]): Model =>
  (_, round) =>
    rounds[round] ?? 'done';

before(async () => {
  box = await toolbox({
    'order.query': ({ body }) => ({ order_id: body.params.order_id, state: 'shipped' }),
    'slow.one': async () => allOfRound().then(() => ({ one: true })),
    'slow.two': async () => allOfRound().then(() => ({ two: true })),
    plain: () => ({ plain: true }),
    signed: () => ({ signed: true }),
    'bad.status': (_, response) => void response.writeHead(500).end('{"why":"broken"}'),
    'bad.hang': () => undefined,
  });
  const { parameters: _none, ...plain } = toolOf(box, 'plain');
  const tools = [
    ...['order.query', 'slow.one', 'slow.two', 'bad.status'].map((id) => toolOf(box, id)),
    plain,
    toolOf(box, 'signed', { secret_env: 'TOOL_SECRET' }),
    toolOf(box, 'bad.hang', { timeout_ms: 80 }),
    toolOf(box, 'bad.gone', { endpoint: 'http://127.0.0.1:9/gone' }),
    toolOf(box, 'vip.only', { allow: { services: ['*'], user_levels: ['vip'] } }),
    toolOf(box, 'secret.tool'),
  ];
  here = await instance({ model: (exchange, round) => model(exchange, round), tools, env: { TOOL_SECRET: 'tool-secret' }, file: { tools_max_rounds: 3 } });
});
after(async () => {
  await here.close();
  await box.close();
});

const last = () => here.asked.at(-1);
const offered = (): string[] => (last()?.tools ?? []).map((tool) => tool.function.name);

describe('what is on offer', () => {
  test("is what the request names, all of the rule's when it names none, and nothing without a rule", async () => {
    model = () => 'well';
    const cases: [string[] | undefined, string[] | null, string[], string[]][] = [
      [undefined, ['order.query', 'plain'], ['order.query', 'plain'], []],
      [['order.query'], ['order.query', 'plain'], ['order.query'], []],
      [['order.query', 'secret.tool', 'no.such'], ['order.query'], ['order.query'], ['secret.tool', 'no.such']],
      [['secret.tool'], ['order.query'], [], ['secret.tool']],
      [undefined, null, [], []],
      [['order.query'], null, ['order.query'], []],
      [undefined, ['general.chat'], [], []],
      [[], ['order.query'], [], []],
    ];
    for (const [names, rule, wanted, missing] of cases) {
      const told = await here.tell('offer', { rule, ...(names ? { ask: { tools: names } } : {}) });
      assert.deepEqual([offered(), told.facts.unavailableTools ?? []], [wanted, missing], JSON.stringify([names, rule]));
    }
  });

  test("is bounded by the key's tools and by each tool's own list", async () => {
    const told = await here.tell('key', { rule: all, keyTools: ['order.*', 'vip.*'], ask: { tools: ['order.query', 'plain', 'vip.only'] } });
    assert.deepEqual([offered(), told.facts.unavailableTools], [['order.query'], ['plain', 'vip.only']]);
    await here.tell('vip', { rule: ['vip.only'], userLevel: 'vip' });
    assert.deepEqual(offered(), ['vip.only']);
  });

  test("stands beside the client's own tools, which pass as they are; a name that both use is the client's", async () => {
    await here.tell('beside', { rule: ['order.query', 'plain'], body: { tools: [clientTool('plain')] } });
    assert.deepEqual(offered(), ['plain', 'order.query']);
    assert.deepEqual(last()?.tools?.[0], clientTool('plain'));
  });

  test('does not change the request of a caller who wants several answers', async () => {
    await here.tell('n', { rule: ['order.query'], body: { n: 2 } });
    assert.deepEqual(offered(), []);
  });
});

describe('a call by the model', () => {
  test('is run by the protocol, and its result goes back to the model', async () => {
    model = plan([call('order.query', { order_id: 'a1' })]);
    const told = await here.tell('protocol', { rule: ['order.query'], ask: { sessionId: 's1', user: 'u-9' } });
    const hit = box.ran('order.query').at(-1);
    assert.equal(told.text, 'done');
    assert.deepEqual(Object.keys(hit?.body ?? {}), ['tool', 'request_id', 'session_id', 'user', 'params']);
    assert.deepEqual([hit?.body.tool, hit?.body.session_id, hit?.body.user, hit?.body.params], ['order.query', 's1', 'u-9', { order_id: 'a1' }]);
    assert.match(hit?.body.request_id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(hit?.headers['idempotency-key'], hit?.body.request_id);
    assert.equal(results(last())[0], '{"order_id":"a1","state":"shipped"}');
    assert.deepEqual(
      told.facts.toolCalls?.map(({ tool, request_id, status, tries }) => [tool, request_id, status, tries]),
      [['order.query', hit?.body.request_id, 'ok', 1]],
    );
    assert.ok(await here.metric('hermes_tool_calls_total{tool="order.query",status="ok"}'));
    assert.ok(told.exchange.trace.spans.some(({ name }) => name === 'tool order.query'));
    const nobody = await here.tell('nobody', { rule: ['order.query'] });
    assert.deepEqual([nobody.text, box.hits.at(-1)?.body.session_id, box.hits.at(-1)?.body.user], ['done', null, null]);
  });

  test('of a tool with a secret is signed over time and body', async () => {
    model = plan([call('signed', { order_id: 'é' })]);
    await here.tell('signed', { rule: ['signed'] });
    const { headers, raw } = box.ran('signed').at(-1) ?? assert.fail();
    const stamp = String(headers['x-hermes-timestamp']);
    assert.match(stamp, /^\d{10}$/);
    assert.equal(headers['x-hermes-signature'], `v1=${createHmac('sha256', 'tool-secret').update(`${stamp}.${raw}`).digest('hex')}`);
  });

  test('keeps integers beyond 2^53 as the model wrote them', async () => {
    model = plan([call('plain', '{"id":9007199254740993,"list":[12345678901234567890]}')]);
    await here.tell('long', { rule: ['plain'] });
    assert.match(box.ran('plain').at(-1)?.raw ?? '', /"params":\{"id":9007199254740993,"list":\[12345678901234567890\]\}/);
    const { parameters } = here.config.tools.find(({ id }) => id === 'order.query') ?? {};
    assert.ok(parameters);
    model = plan([call('order.query', '{"order_id":"x","amount":9007199254740993}')]);
    await here.tell('long number', { rule: ['order.query'] });
    assert.match(box.ran('order.query').at(-1)?.raw ?? '', /"amount":9007199254740993/);
  });

  test('without arguments is run with none', async () => {
    for (const args of ['', ' ', '{}']) {
      model = plan([call('plain', args)]);
      await here.tell(`none ${args}`, { rule: ['plain'] });
      assert.deepEqual(box.ran('plain').at(-1)?.body.params, {});
      assert.equal(last()?.messages.find(({ tool_calls }) => tool_calls)?.tool_calls?.[0]?.function.arguments, '{}');
    }
  });

  test('whose params do not fit never runs, and the model is told why', async () => {
    const hits = box.hits.length;
    for (const args of ['{}', '{"order_id":5}', '[]', '"x"', '{"order_id":', 'null']) {
      model = plan([call('order.query', args)]);
      const told = await here.tell(`bad ${args}`, { rule: ['order.query'] });
      assert.equal(told.text, 'done');
      assert.match(results(last())[0] ?? '', /order_id|JSON/);
      assert.equal(told.facts.toolCalls?.[0]?.status, 'invalid');
      JSON.parse(last()?.messages.find(({ tool_calls }) => tool_calls)?.tool_calls?.[0]?.function.arguments ?? '');
    }
    assert.equal(box.hits.length, hits);
  });

  test('of a tool that was not on offer is answered with "tool not available", never run', async () => {
    for (const [names, name] of [
      [['order.query', 'secret.tool'], 'secret_tool'],
      [['secret.tool'], 'secret.tool'],
      [['order.query'], 'made.up'],
    ] as const) {
      model = plan([call(name, { order_id: 'x' })]);
      const told = await here.tell(`unavailable ${name}`, { rule: ['order.query'], ask: { tools: [...names] } });
      assert.deepEqual([told.text, told.facts.toolCalls?.[0]?.status], ['done', 'unavailable']);
      assert.match(results(last())[0] ?? '', /tool not available/);
    }
    assert.equal(box.ran('secret.tool').length, 0);
    assert.ok(await here.metric('hermes_tool_calls_total{tool="other",status="unavailable"}'));
  });

  test('that fails, hangs or finds nobody is told to the model, without an address', async () => {
    for (const [name, status, word] of [
      ['bad.status', 'error', /500.*broken/],
      ['bad.hang', 'timeout', /80 ms/],
      ['bad.gone', 'error', /reached/],
    ] as const) {
      model = plan([call(name, { order_id: 'x' })]);
      const told = await here.tell(name, { rule: all });
      assert.deepEqual([told.text, told.facts.toolCalls?.[0]?.status], ['done', status]);
      assert.match(results(last())[0] ?? '', word);
      assert.doesNotMatch(results(last())[0] ?? '', /127\.0\.0\.1/);
    }
  });

  test('runs side by side with the others of its round, and the same call twice has two ids', async () => {
    model = plan([call('slow.one', { order_id: 'x' }, 'a'), call('slow.two', { order_id: 'x' }, 'b'), call('slow.two', { order_id: 'x' }, 'c')]);
    // None of them answers before all three have begun: one after another, the first would pass its time.
    const before = box.hits.length;
    allOfRound = () => until(() => box.hits.length === before + 3);
    const told = await here.tell('parallel', { rule: all });
    assert.deepEqual(
      told.facts.toolCalls?.map(({ status }) => status),
      ['ok', 'ok', 'ok'],
    );
    const ids = box.hits.slice(-3).map(({ body }) => body.request_id);
    assert.equal(new Set(ids).size, 3);
    assert.deepEqual(results(last()), ['{"one":true}', '{"two":true}', '{"two":true}']);
  });

  test('that only reads ends when the client leaves', async () => {
    model = plan([call('slow.one', { order_id: 'gone' })]);
    allOfRound = () => new Promise(() => undefined);
    const count = box.ran('slow.one').length;
    const told = await here.tell('leaves', { rule: all, leave: until(() => box.ran('slow.one').length > count) });
    assert.equal(told.error?.code, 'client_closed');
    await until(() => box.ran('slow.one').at(-1)?.aborted);
  });
});

describe('rounds', () => {
  test('in a stream are one stream: texts in order, no call of ours, one role, one finish, one id, the sum of usage', async () => {
    model = (_, round) =>
      round === 0
        ? { message: { role: 'assistant', content: 'Let me look. ', tool_calls: [call('order.query', { order_id: 'r' })] } }
        : round === 1
          ? [call('plain', {})]
          : 'It is shipped.';
    const told = await here.tell('stream', { rule: all, stream: true });
    const choices = told.chunks.flatMap((chunk) => chunk.choices);
    assert.equal(told.text, 'Let me look. It is shipped.');
    assert.equal(choices.filter(({ delta }) => delta?.role).length, 1);
    assert.deepEqual(choices.map(({ finish_reason }) => finish_reason).filter(Boolean), ['stop']);
    assert.ok(!choices.some(({ delta }) => delta?.tool_calls));
    assert.equal(new Set(told.chunks.map(({ id }) => id)).size, 1);
    assert.deepEqual([told.chunks.at(-1)?.usage?.total_tokens, told.facts.usage?.total_tokens, told.facts.attempts], [45, 45, 3]);
  });

  test('as a whole body end in the last message, with the usage and the attempts of all', async () => {
    model = plan([call('order.query', { order_id: 'w' })], [call('plain', {})]);
    const told = await here.tell('whole', { rule: all });
    const [choice] = told.completion?.choices ?? [];
    assert.deepEqual([choice?.message.content, choice?.message.tool_calls, choice?.finish_reason], ['done', undefined, 'stop']);
    assert.deepEqual([told.completion?.usage?.total_tokens, told.facts.usage?.total_tokens, told.facts.attempts, told.facts.toolCalls?.length], [45, 45, 3, 2]);
  });

  test('are at most as many as configured; then the model is asked once more, without tools', async () => {
    for (const stream of [false, true]) {
      const count = here.asked.length;
      model = () => [call('plain', {})];
      const told = await here.tell(`endless ${stream}`, { rule: all, stream });
      assert.equal(here.asked.length - count, 4);
      assert.deepEqual([last()?.tools, told.error, told.facts.toolCalls?.length], [undefined, undefined, 3]);
      assert.equal(told.completion?.choices[0]?.finish_reason, 'stop');
      assert.equal(told.completion?.choices[0]?.message.tool_calls, undefined);
    }
  });

  test('do not keep forcing a call that the client asked for', async () => {
    model = plan([call('plain', {})]);
    await here.tell('forced', { rule: all, body: { tool_choice: 'required' } });
    assert.deepEqual([here.asked.at(-2)?.tool_choice, last()?.tool_choice], ['required', undefined]);
  });

  test('that fail later end as that failure, and say which tools have run', async () => {
    model = (_, round) => (round === 0 ? [call('plain', {})] : new HermesError('upstream_error', 'down'));
    for (const stream of [false, true]) {
      const told = await here.tell(`later ${stream}`, { rule: all, stream });
      assert.deepEqual([told.error?.code, told.facts.toolCalls?.length], ['upstream_error', 1]);
    }
  });

  test('understand calls under any finish reason, and an empty list as the end', async () => {
    for (const finish of ['stop', '', 'length']) {
      model = (_, round) => (round === 0 ? { message: { role: 'assistant', content: null, tool_calls: [call('plain', {})] }, finish } : 'done');
      assert.equal((await here.tell(`finish ${finish}`, { rule: all })).text, 'done');
    }
    model = () => ({ message: { role: 'assistant', content: 'over', tool_calls: [] }, finish: 'tool_calls' });
    for (const stream of [false, true]) {
      const told = await here.tell(`empty ${stream}`, { rule: all, stream });
      assert.deepEqual([told.text, told.completion?.choices[0]?.finish_reason], ['over', 'stop']);
    }
  });

  test('keep what belongs to the message: reasoning and signed thinking go back first and as they came', async () => {
    const thinking = [{ type: 'thinking', thinking: 'hm', signature: 'c2ln' }];
    const said: ChatMessage = { role: 'assistant', content: '', reasoning_content: 'hm', thinking_blocks: thinking, tool_calls: [call('plain', {})] };
    for (const stream of [false, true]) {
      model = (_, round) => (round === 0 ? { message: said } : 'done');
      await here.tell(`thinking ${stream}`, { rule: all, stream });
      const message = last()?.messages.find(({ tool_calls }) => tool_calls);
      assert.deepEqual([message?.thinking_blocks, message?.reasoning_content, message?.content], [thinking, 'hm', null]);
    }
  });

  test('of a turn are handed to the session, in order', async () => {
    model = plan([call('plain', {}, 'a')], [call('plain', {}, 'b')]);
    const exchanges: (readonly ChatMessage[] | undefined)[] = [];
    const spy = model;
    model = (exchange, round) => {
      exchanges.push(exchange.turnMessages);
      return spy(exchange, round);
    };
    await here.tell('turn', { rule: all });
    assert.deepEqual(
      exchanges.at(-1)?.map(({ role, tool_calls, tool_call_id }) => [role, tool_calls?.[0]?.id ?? tool_call_id]),
      [
        ['assistant', 'a'],
        ['tool', 'a'],
        ['assistant', 'b'],
        ['tool', 'b'],
      ],
    );
  });
});

describe("the client's own calls", () => {
  test('go to the client, also under another finish reason, and end the turn', async () => {
    for (const stream of [false, true]) {
      model = () => ({ message: { role: 'assistant', content: null, tool_calls: [call('client_fn', '')] }, finish: 'stop' });
      const told = await here.tell(`client ${stream}`, { rule: all, stream, body: { tools: [clientTool()] } });
      const [choice] = told.completion?.choices ?? [];
      assert.deepEqual([choice?.finish_reason, choice?.message.tool_calls?.[0]?.function], ['tool_calls', { name: 'client_fn', arguments: '{}' }]);
    }
  });

  test("in one answer with the server's are counted from 0, while the server's run and rejoin with the client's results", async () => {
    for (const stream of [false, true]) {
      const mixed = [call('order.query', { order_id: 'm' }, 'mine'), call('client_fn', { x: 1 }, 'yours'), call('plain', {}, 'mine too')];
      model = (_, round) => (round === 0 ? mixed : 'done');
      const options = { rule: all, stream, body: { tools: [clientTool()] } };
      const text = `mixed ${stream}`;
      const told = await here.tell(text, options);
      const shown = told.completion?.choices[0]?.message ?? assert.fail();
      assert.deepEqual([shown.tool_calls?.map(({ id }) => id), told.completion?.choices[0]?.finish_reason], [['yours'], 'tool_calls']);
      if (stream) assert.deepEqual([...new Set(told.chunks.flatMap(({ choices }) => choices[0]?.delta?.tool_calls ?? []).map(({ index }) => index))], [0]);
      const back = await here.tell([user(text), shown, { role: 'tool', tool_call_id: 'yours', content: 'forty-two' }], options);
      assert.equal(back.text, 'done');
      assert.deepEqual(
        last()?.messages.map(({ role, tool_calls, tool_call_id }) => [role, tool_calls?.map(({ id }) => id) ?? tool_call_id]),
        [
          ['user', undefined],
          ['assistant', ['mine', 'yours', 'mine too']],
          ['tool', 'mine'],
          ['tool', 'yours'],
          ['tool', 'mine too'],
        ],
      );
      assert.match(results(last())[0] ?? '', /shipped/);
    }
  });

  test("of Anthropic's native tools go to the client, beside the server's own on offer", async () => {
    for (const stream of [false, true]) {
      model = () => [call('bash', { command: 'ls' }, 'native')];
      const told = await here.tell(`native ${stream}`, {
        rule: all,
        stream,
        body: { anthropic: { tools: [{ type: 'bash_20250124', name: 'bash' }, { type: 'mcp_toolset' }] } },
      });
      assert.deepEqual(
        told.completion?.choices[0]?.message.tool_calls?.map(({ id }) => id),
        ['native'],
      );
    }
  });

  test('of another caller, or to another question, bring no foreign results back', async () => {
    model = (_, round) => (round === 0 ? [call('order.query', { order_id: 'f' }, 'mine'), call('client_fn', {}, 'yours')] : 'done');
    const options = { rule: all, body: { tools: [clientTool()] } };
    const told = await here.tell('foreign', options);
    const shown = told.completion?.choices[0]?.message ?? assert.fail();
    const result: ChatMessage = { role: 'tool', tool_call_id: 'yours', content: 'x' };
    for (const [text, key] of [
      ['foreign', 'other'],
      ['another', 'k'],
    ] as const) {
      await here.tell([user(text), shown, result], { ...options, key });
      assert.deepEqual(results(last()), ['x']);
    }
  });

  test('that come in pieces before their name are not lost', async () => {
    const piece = (index: number, part: object, id?: string) => ({ tool_calls: [{ index, ...(id ? { id, type: 'function' } : {}), function: part }] });
    model = (_, round) =>
      round === 0
        ? deltas([
            { role: 'assistant' },
            piece(0, { name: 'plain', arguments: '' }, 'a'),
            piece(1, {}, 'b'),
            piece(1, { name: 'client_fn' }),
            piece(0, { arguments: '{}' }),
            piece(1, { arguments: '{"x":' }),
            piece(1, { arguments: '1}' }),
            '.stop',
          ])
        : 'done';
    const told = await here.tell('pieces', { rule: all, stream: true, body: { tools: [clientTool()] } });
    assert.deepEqual(told.completion?.choices[0]?.message.tool_calls, [{ id: 'b', type: 'function', function: { name: 'client_fn', arguments: '{"x":1}' } }]);
  });
});

test('an answer in which hermes had no part is the very one of the model', async () => {
  const body = {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'as it came' }, finish_reason: 'stop' }],
  };
  model = () => ({ body, facts: {} });
  assert.equal((await here.tell('untouched', { rule: all })).completion, body);
});
