import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { HermesError } from '../../src/contracts/errors.ts';
import { failureOf } from '../../src/upstream/failure.ts';
import type { ChatCompletion, ChatMessage, ChatRequest } from '../../src/wire/chat.ts';
import { costIn } from '../time-kit.ts';
import { createSender, drain, type Sender } from '../upstream/send-kit.ts';

let s: Sender;
before(async () => {
  s = await createSender();
});
after(() => s.close());

const target = { provider: 'simulator', apiKeyEnv: undefined, apiKey: undefined, modelName: 'sim?slow=0' };
const say = (content: string): ChatMessage[] => [{ role: 'user', content }];
async function whole(request: Partial<ChatRequest>, over = {}): Promise<ChatCompletion> {
  const { answer } = await s.ask(request, { ...target, ...over });
  assert.equal(answer.error, undefined);
  return answer.view as ChatCompletion;
}
const text = (completion: ChatCompletion) => completion.choices[0]?.message.content as string;
const tools = ['order.query', 'refund.apply'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] } },
}));

test('it answers in the language of the question, and the same each time', async () => {
  const chinese = await whole({ messages: say('你好，请介绍一下你自己') });
  assert.match(text(chinese), /[\u4e00-\u9fff]/);
  assert.match(text(await whole({ messages: say('Tell me about yourself') })), /^[\x20-\x7e]+$/);
  assert.deepEqual(await whole({ messages: say('你好，请介绍一下你自己') }), chinese);
  assert.ok((chinese.usage?.completion_tokens ?? 0) > 0);
});
test('it streams at its pace, the same text', async () => {
  const messages = say('介绍一下');
  const from = performance.now();
  const { answer } = await s.ask({ messages, stream: true }, { ...target, modelName: 'sim?slow=5' });
  const drained = await drain(answer.stream);
  assert.equal(drained.text, text(await whole({ messages })));
  assert.ok(performance.now() - from > 20 && drained.chunks.length > 5);
  assert.equal(s.booked.at(-2)?.estimated, false);
});
test('it calls the tool that fits, then answers with its result', async () => {
  const asked = say('帮我查一下订单 A1024 到哪了');
  const { message, finish_reason } = (await whole({ messages: asked, tools })).choices[0] ?? {};
  assert.equal(finish_reason, 'tool_calls');
  assert.deepEqual(message?.tool_calls?.[0]?.function, { name: 'order.query', arguments: '{"order_id":"A1024"}' });
  const id = message?.tool_calls?.[0]?.id ?? '';
  const next = await whole({
    messages: [...asked, message as ChatMessage, { role: 'tool', tool_call_id: id, content: '{"order_id":"A1024","state":"已发货"}' }],
    tools,
  });
  assert.match(text(next), /已发货/);
  const refund = await whole({ messages: say('I want a refund for order 7788'), tools });
  assert.deepEqual(refund.choices[0]?.message.tool_calls?.[0]?.function, { name: 'refund.apply', arguments: '{"order_id":"7788"}' });
  assert.equal((await whole({ messages: say('讲个笑话'), tools })).choices[0]?.finish_reason, 'stop');
  assert.match(text(await whole({ messages: say('我的快递到哪了'), tools })), /order_id/);
  assert.equal((await whole({ messages: say('查订单 123456'), tools, tool_choice: 'none' })).choices[0]?.finish_reason, 'stop');
});
test('it misbehaves as it is told', async () => {
  for (const stream of [false, true]) {
    const failed = await s.ask({ messages: say('x [[fail 429 3]]'), stream }, target);
    const failure = failureOf(failed.answer.error as HermesError);
    assert.deepEqual([failure?.kind, failure?.status, failure?.retryAfterMs], ['rate_limited', 429, 3000]);
    const stalled = await s.ask({ messages: say('x [[stall]]'), stream }, { ...target, timeoutMs: 60, firstTokenTimeoutMs: 60 });
    const error = stalled.answer.error ?? (await drain(stalled.answer.stream)).error;
    assert.equal((error as HermesError).code, 'upstream_timeout');
  }
  assert.equal((await s.ask({ messages: say('x') }, { ...target, modelName: 'sim?fail=503' })).answer.error?.code, 'upstream_error');
  const cut = await drain((await s.ask({ messages: say('hello [[cut 3]]'), stream: true }, target)).answer.stream);
  assert.equal((cut.error as HermesError).code, 'upstream_error');
  assert.ok(cut.text.length > 0);
  assert.equal(text(await whole({ messages: say('[[say 好的，没问题]]') })), '好的，没问题');
  const called = await whole({ messages: say('[[tool order.query {"order_id":"1"}]]') });
  assert.deepEqual(called.choices[0]?.message.tool_calls?.[0]?.function, { name: 'order.query', arguments: '{"order_id":"1"}' });
  assert.equal((await whole({ messages: say('hello there'), max_tokens: 2 })).choices[0]?.finish_reason, 'length');
});
test('who leaves stops it at once', async () => {
  const { exchange, answer } = await s.ask({ messages: say('hello [[slow 50]]'), stream: true }, target);
  await answer.stream?.read();
  await answer.stream?.cancel();
  assert.equal(exchange.calls[0]?.outcome, 'aborted');
});
test('directives that are never closed cost no time, however many there are', async () => {
  const open = (times: number): string => '[[say [[think   '.repeat(times);
  const told = async (times: number): Promise<void> => {
    assert.match(text(await whole({ messages: say(open(times)) })), /./);
    assert.equal(text(await whole({ messages: say(`[[ nothing [[say one [[ two]] ${open(times)}`) })), 'one [[ two');
  };
  // Ten where each character is looked at a few times, a hundred where each one is looked for to the end.
  const growth = await costIn(
    () => told(10_000),
    () => told(100_000),
  );
  assert.ok(growth < 30, `ten times the text costs ${growth.toFixed(1)} times as much`);
});
