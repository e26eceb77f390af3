import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEY, type Reply, startApp, user } from '../app-kit.ts';
import { bare, createRaw, DONE, event, type Field, messageEnd, messageStart, named, openField, piece, sse, textBlock, toldIn } from './field-kit.ts';

const usage = (completion_tokens: number, prompt_tokens = 10) => ({ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens });
const SAID = event(piece({ role: 'assistant', content: 'Hi' }));
const FINISH = event(piece({}, 'stop'));

let field: Field;
before(async () => {
  field = await openField({ openai: ['m', 'hang', 'picky'], anthropic: ['claude'] });
});
after(() => field.close());
const streamed = (model: string, more: object = {}): Promise<Reply> =>
  field.app.chat({ model, stream: true, messages: user('hi'), ...more }, { 'x-hermes-verbose': '1' });
interface Row {
  model: string;
  calls: number;
  estimated_calls: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
}
const booked = async (model: string): Promise<Row | undefined> => {
  const { rows } = (await field.app.fetch('/admin/costs?day=today&by=model')).json as unknown as { rows: Row[] };
  return rows.find((row) => row.model === model);
};

describe('field report 22: wherever usage stands, the last that is not null wins, never a sum', () => {
  for (const [what, stream, tokens] of [
    ['on the finish chunk', SAID + event(piece({}, 'stop', { usage: usage(5) })), [10, 5, false]],
    ['on the chunk before the last', SAID + event(bare({ usage: usage(5) })) + FINISH, [10, 5, false]],
    ['on its own', SAID + FINISH + event(bare({ usage: usage(5) })), [10, 5, false]],
    [
      'null on all but one',
      event(piece({ role: 'assistant', content: 'Hi' }, null, { usage: null })) + event(piece({}, 'stop', { usage: null })) + event(bare({ usage: usage(5) })),
      [10, 5, false],
    ],
    [
      'cumulative on every one',
      event(piece({ role: 'assistant', content: 'Hi' }, null, { usage: usage(1) })) +
        event(piece({ content: ' you' }, null, { usage: usage(2) })) +
        event(piece({}, 'stop', { usage: usage(5) })),
      [10, 5, false],
    ],
    ['never', SAID + FINISH, [undefined, undefined, true]],
  ] as const)
    test(`${what}; who did not ask does not get the chunk`, async () => {
      field.raw.answers.set('m', sse([stream + DONE]));
      const reply = await streamed('m');
      const { hermes, finish, usage: shown } = toldIn(reply);
      assert.equal(hermes?.tokens.estimated, tokens[2]);
      if (tokens[0] !== undefined) assert.deepEqual([hermes?.tokens.input, hermes?.tokens.output], [tokens[0], tokens[1]]);
      else assert.ok(Number(hermes?.tokens.input) > 0 && Number(hermes?.tokens.output) > 0);
      assert.deepEqual([finish, shown], [['stop'], undefined]);
      assert.doesNotMatch(reply.text, /"usage"/);
      field.raw.answers.set('m', sse([stream + DONE]));
      const asked = toldIn(await streamed('m', { stream_options: { include_usage: true } }));
      assert.deepEqual(asked.usage?.completion_tokens, tokens[1] ?? asked.usage?.completion_tokens);
    });

  test('a 400 on stream_options is ours to mend: the caller sees nothing of it', async () => {
    field.raw.answers.set('picky', (response) => {
      const refused = field.raw.requests.at(-1)?.raw.includes('stream_options');
      if (!refused) return sse([SAID + FINISH + DONE])(response);
      return void response.writeHead(400, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          error: { message: 'Unrecognized request argument supplied: stream_options', type: 'invalid_request_error', param: 'stream_options', code: null },
        }),
      );
    });
    const { text, hermes, errors } = toldIn(await streamed('picky'));
    assert.deepEqual([text, errors, hermes?.tokens.estimated], ['Hi', [], true]);
  });
});

test('field report 23: a client that hangs up after the last text and before usage is booked once, as an estimate', async () => {
  field.raw.answers.set('hang', async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(SAID);
    await sleep(2000);
    response.end(FINISH + event(bare({ usage: usage(5) })) + DONE);
  });
  const controller = new AbortController();
  const response = await fetch(`${field.app.base}/v1/chat/completions`, {
    method: 'POST',
    signal: controller.signal,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'hang', stream: true, messages: user('a question of some length') }),
  });
  await response.body?.getReader().read();
  controller.abort();
  let row: Row | undefined;
  for (const end = performance.now() + 3000; row === undefined && performance.now() < end; await sleep(50)) row = await booked('hang');
  assert.deepEqual([row?.calls, row?.estimated_calls], [1, 1]);
  assert.ok(Number(row?.input_tokens) > 3 && Number(row?.output_tokens) > 0);
});

test("field report 24: Anthropic's counters are cumulative: the latest of each field, never added", async () => {
  const start = messageStart({ input_tokens: 10, cache_read_input_tokens: 4, output_tokens: 1 });
  const later = { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } };
  const end = messageEnd({ output_tokens: 9 });
  field.raw.answers.set('claude', sse([named(start, ...textBlock('Hi'), later, { ...end[0], type: 'message_delta', delta: {} }, { type: 'message_stop' })]));
  const { hermes, finish } = toldIn(await streamed('claude'));
  assert.deepEqual([hermes?.tokens, finish], [{ input: 14, cached: 4, output: 9, reasoning: 0, estimated: false }, ['stop']]);
});

describe('field report 25: prompt tokens include the cached ones, once', () => {
  const price = (input: number, cached: number, output: number): number => ((input - cached) * 1 + cached * 0.5 + output * 2) / 1e6;
  const priced = { input_per_million: 1, output_per_million: 2, cached_input_per_million: 0.5 };

  test("OpenAI's as they are, Anthropic's converted, both billed once, and converted back at Anthropic's door", async () => {
    const raw = await createRaw();
    const models = [
      { id: 'm', provider: 'openai', model_name: 'm', api_base: `${raw.url}/v1`, api_key_env: 'UP_KEY', pricing: priced },
      { id: 'claude', provider: 'anthropic', model_name: 'claude', api_base: raw.url, api_key_env: 'UP_KEY', pricing: priced },
    ];
    const app = await startApp({ models }, { env: { UP_KEY: 'sk-up' } });
    try {
      const json = (value: object) => (response: ServerResponse) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      raw.answers.set(
        'm',
        json({
          id: 'c',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
          usage: { ...usage(5, 100), prompt_tokens_details: { cached_tokens: 60 } },
        }),
      );
      raw.answers.set(
        'claude',
        json({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'claude',
          content: [{ type: 'text', text: 'Hi' }],
          stop_reason: 'end_turn',
          usage: { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 5 },
        }),
      );
      for (const model of ['m', 'claude']) {
        const reply = await app.chat({ model, messages: user('hi') }, { 'x-hermes-verbose': '1' });
        const { hermes, usage: told } = reply.json as unknown as {
          hermes: { tokens: object; cost_usd: number };
          usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
        };
        assert.deepEqual(hermes.tokens, { input: 100, cached: 60, output: 5, reasoning: 0, estimated: false }, model);
        assert.equal(hermes.cost_usd, price(100, 60, 5));
        assert.deepEqual([told.prompt_tokens, told.prompt_tokens_details.cached_tokens], [100, 60]);
      }
      const back = (await app.post('/v1/messages', { model: 'm', max_tokens: 10, messages: user('hi') })).json as unknown as { usage: Record<string, number> };
      assert.deepEqual([back.usage.input_tokens, back.usage.cache_read_input_tokens], [40, 60]);
    } finally {
      await app.stop();
      await raw.close();
    }
  });
});
