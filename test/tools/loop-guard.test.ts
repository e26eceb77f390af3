import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { call, type Instance, instance, type Model, type Toolbox, toolbox, toolOf } from './tools-kit.ts';

describe('the loop guard', () => {
  let box: Toolbox;
  let here: Instance;
  let model: Model = () => 'done';
  let polls = 0;
  before(async () => {
    box = await toolbox({
      'order.query': () => ({ state: 'lost' }),
      poll: () => ({ percent: ++polls }),
      broken: (_, response) => void response.writeHead(500).end('no'),
    });
    const tools = ['order.query', 'poll', 'broken'].map((id) => toolOf(box, id, { parameters: { type: 'object', properties: {} } }));
    here = await instance({ model: (exchange, round) => model(exchange, round), tools, file: { tool_loop_guard: { repeats: 3 }, tools_max_rounds: 8 } });
  });
  after(async () => {
    await here.close();
    await box.close();
  });
  const rule = ['order.query', 'poll', 'broken'];
  const ask = async (stream: boolean) => {
    here.asked.splice(0);
    box.hits.splice(0);
    return here.tell('where is it?', { rule, stream });
  };

  it('asks the model once more, without tools, when the same call was made so many times', async () => {
    // The same arguments in another order and with other spaces are the same.
    const written = ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }'];
    model = ({ request }, round) =>
      request.tools ? [{ ...call('order.query', {}), function: { name: 'order.query', arguments: written[round % 2] ?? '' } }] : 'I cannot find it.';
    for (const stream of [false, true]) {
      const { text, facts } = await ask(stream);
      assert.equal(text, 'I cannot find it.');
      assert.equal(box.hits.length, 3);
      assert.equal(facts.toolCalls?.length, 3);
      assert.equal(here.asked.length, 4);
      assert.deepEqual([here.asked[3]?.tools, here.asked[3]?.messages.at(-1)?.role], [undefined, 'user']);
      assert.match(String(here.asked[3]?.messages.at(-1)?.content), /order\.query was called 3 times with the same arguments/);
    }
    assert.ok(await here.metric('hermes_tool_loops_total{tool="order.query"} 2'));
  });

  it('explains by itself when the model only wants to go on', async () => {
    model = () => [call('order.query', {})];
    for (const stream of [false, true]) {
      const { text, completion, chunks } = await ask(stream);
      assert.match(text, /^I stopped here\. The tool order\.query was called 3 times/);
      const finish =
        completion?.choices[0]?.finish_reason ?? chunks.flatMap(({ choices }) => choices).find(({ finish_reason }) => finish_reason)?.finish_reason;
      assert.equal(finish, 'stop');
      assert.equal(here.asked.length, 4);
    }
  });

  it('ends rounds that bring nothing new: failures, and answers that were there before', async () => {
    model = ({ request }, round) => (request.tools ? [call(round % 2 ? 'broken' : 'no.such', { try: round })] : 'Nothing works.');
    assert.equal((await ask(false)).text, 'Nothing works.');
    assert.equal(here.asked.length, 4);
    model = ({ request }, round) => (request.tools ? [call('order.query', { page: round })] : 'Always the same.');
    await ask(false);
    assert.equal(here.asked.length, 5);
  });

  it('lets a turn go on that makes progress', async () => {
    model = (_, round) => (round < 6 ? [call('poll', { round })] : 'ready');
    assert.equal((await ask(true)).text, 'ready');
    assert.equal(box.hits.length, 6);
  });

  it('does not stay in the conversation', async () => {
    model = ({ request }) => (request.tools ? [call('order.query', {})] : 'ok');
    const { exchange } = await ask(false);
    assert.ok(!JSON.stringify(exchange.turnMessages ?? []).includes('with the same arguments'));
  });
});
