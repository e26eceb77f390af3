import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

const CARD = '4111 1111 1111 1111';

describe('guards between Anthropic clients and Anthropic models', () => {
  let upstream: FakeAnthropic;
  let app: RunningApp;
  before(async () => {
    upstream = await createFakeAnthropic(({ body }) => {
      const results = body.messages.flatMap(({ content }) => content).filter(({ type }) => type === 'tool_result');
      if (results.length > 0) return [{ type: 'text', text: 'Done with ⟦card_1⟧, call 13812345678.' }];
      return [
        { type: 'thinking', thinking: 'They gave me ⟦card_1⟧.', signature: 'c2lnbmVk' },
        { type: 'text', text: 'I charge ⟦card_1⟧.' },
        { type: 'tool_use', id: 'toolu_1', name: 'pay', input: { card: '⟦card_1⟧' } },
      ];
    });
    app = await startApp(
      {
        models: [{ id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: upstream.url, api_key_env: 'ANT_KEY', max_tokens: 4000 }],
        guards: [{ id: 'people', kind: 'pii', action: 'redact' }],
      },
      { env: { ANT_KEY: 'sk-ant' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });

  it('redact what is relayed otherwise, restore text and tool input, and leave signed thinking valid', async () => {
    const client = new Anthropic({ apiKey: KEY, baseURL: app.base, maxRetries: 0 });
    const base = {
      model: 'claude',
      max_tokens: 3000,
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
      tools: [{ name: 'pay', input_schema: { type: 'object' as const, properties: { card: { type: 'string' } } } }],
    };
    for (const stream of [false, true]) {
      const ask = async (messages: Anthropic.MessageParam[]): Promise<Anthropic.Message> =>
        stream ? client.messages.stream({ ...base, messages }).finalMessage() : client.messages.create({ ...base, messages });
      const question: Anthropic.MessageParam = { role: 'user', content: [{ type: 'text', text: `Pay with ${CARD}`, cache_control: { type: 'ephemeral' } }] };
      const first = await ask([question]);
      const [thinking, text, call] = first.content;
      assert.deepEqual(
        [thinking?.type === 'thinking' && [thinking.thinking, thinking.signature], text?.type === 'text' && text.text, call?.type === 'tool_use' && call.input],
        [['They gave me ⟦card_1⟧.', 'c2lnbmVk'], `I charge ${CARD}.`, { card: CARD }],
      );
      const second = await ask([
        question,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: `paid ${CARD}` }] },
      ]);
      assert.equal(second.content[0]?.type === 'text' && second.content[0].text, `Done with ${CARD}, call ⟦phone_1⟧.`);
    }
    assert.deepEqual(upstream.violations, []);
    assert.doesNotMatch(upstream.calls.map(({ raw }) => raw).join('\n'), /4111/);
    assert.match(upstream.calls[1]?.raw ?? '', /"thinking":"They gave me ⟦card_1⟧\."/);
  });
});

describe('what only Anthropic can say: sources, and what its own tools ask and find', () => {
  const MAIL = 'jane.doe@example.com';
  const source = (title: string) => ({
    type: 'char_location',
    cited_text: 'so it is',
    document_index: 0,
    document_title: title,
    start_char_index: 0,
    end_char_index: 8,
  });
  const cited = (title: string) => ({ type: 'text', text: '42.', citations: [source(title)] });
  const results = (title: string) => [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: `plan of ${title}` } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result', title, url: 'https://a.example' }] },
    { type: 'text', text: '42.' },
  ];
  const cases = { cited: (title: string) => [cited(title)], results };
  let blocks: (ReturnType<typeof cited> | ReturnType<typeof results>[number])[] = [];
  let upstream: FakeAnthropic;
  const apps: RunningApp[] = [];
  const start = async (action: string) => {
    const app = await startApp(
      {
        models: [{ id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: upstream.url, api_key_env: 'ANT_KEY', max_tokens: 4000 }],
        guards: [{ id: 'people', kind: 'pii', action }],
      },
      { env: { ANT_KEY: 'sk-ant' } },
    );
    apps.push(app);
    return (stream: boolean) => app.post('/v1/messages', { model: 'claude', max_tokens: 50, stream, messages: [{ role: 'user', content: 'q' }] });
  };
  before(async () => {
    upstream = await createFakeAnthropic(() => blocks);
  });
  after(async () => {
    for (const app of apps) await app.stop();
    await upstream.close();
  });

  it('is relayed while nothing is found in it, and left out otherwise', async () => {
    const ask = await start('redact');
    for (const [name, make] of Object.entries(cases)) {
      for (const stream of [false, true]) {
        blocks = make(MAIL);
        const { text } = await ask(stream);
        assert.doesNotMatch(text, /jane|doe@/, name);
        assert.match(text, /42\./, name);
      }
    }
    blocks = cases.cited('The book');
    assert.match((await ask(false)).text, /The book/);
  });

  it('is refused where a guard blocks, and passes where it flags', async () => {
    const [blocked, flagged] = [await start('block'), await start('flag')];
    for (const make of Object.values(cases)) {
      for (const stream of [false, true]) {
        blocks = make(MAIL);
        const { text } = await blocked(stream);
        // What a tool of the vendor's is asked comes in pieces: it is left out before anything can be found in it.
        if (!stream || make === cases.cited) assert.match(text, /let pass/);
        assert.doesNotMatch(text, /jane|doe@/);
      }
      const passed = await flagged(false);
      assert.deepEqual([passed.text.includes(MAIL), passed.headers.get('x-hermes-guard')], [true, 'people']);
    }
  });
});
