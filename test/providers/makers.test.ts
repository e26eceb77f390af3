import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Reply, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type AnthropicCall, createFakeAnthropic, type FakeAnthropic } from './fake-anthropic.ts';

const ROUNDS = 3;
const CALL = { name: 'order.query', arguments: '{"order_id":"A1"}' };

/** Rounds of tools since the newest user text. */
function roundsIn(roles: readonly string[]): number {
  return roles.slice(roles.lastIndexOf('user') + 1).filter((role) => role === 'assistant').length;
}

describe('reasoning of a turn whose rounds were answered by several vendors', () => {
  let app: RunningApp;
  let endpoint: Server;
  let deepseek: FakeUpstream;
  const claudes: FakeAnthropic[] = [];

  const claude = async (name: string): Promise<FakeAnthropic> => {
    const fake: FakeAnthropic = await createFakeAnthropic(({ body }) => {
      const roles = body.messages.map(({ role, content }) => (content[0]?.type === 'tool_result' ? 'result' : role));
      const id = `${name}-${fake.calls.length}`;
      const thinking = { type: 'thinking', thinking: `thought of ${id}`, signature: `sig-${id}` };
      if (roundsIn(roles) >= ROUNDS) return [thinking, { type: 'text', text: `${name} says it is shipped.` }];
      return [thinking, { type: 'tool_use', id: `toolu_${id}`, name: 'order__query', input: { order_id: id } }];
    });
    claudes.push(fake);
    return fake;
  };

  before(async () => {
    endpoint = createServer((request, response) => request.resume().on('end', () => response.end('{"state":"shipped"}')));
    await new Promise<void>((done) => endpoint.listen(0, '127.0.0.1', done));
    const [one, other] = [await claude('one'), await claude('other')];
    deepseek = await createFakeUpstream();
    deepseek.on('deepseek-reasoner', (reply, { body, earlier }) => {
      const reasoning_content = `deepseek thought ${earlier}`;
      const final = roundsIn(body.messages.map(({ role }) => role)) >= ROUNDS;
      const call = { id: `call_${earlier}`, type: 'function', function: { name: 'order__query', arguments: CALL.arguments.replace('A1', `D${earlier}`) } };
      const message = { reasoning_content, content: final ? 'deepseek says it is shipped.' : null, ...(final ? {} : { tool_calls: [call] }) };
      if (!body.stream) return reply.completion(message, { finish: final ? 'stop' : 'tool_calls' });
      const said = final ? [{ content: message.content ?? '' }] : [{ tool_calls: [{ index: 0, ...call }] }];
      return reply.stream([{ role: 'assistant', content: '' }, { reasoning_content }, ...said, final ? 'stop' : 'tool_calls']);
    });
    const anthropic = (id: string, fake: FakeAnthropic) => ({
      id,
      provider: 'anthropic',
      model_name: 'claude-sonnet-4-5',
      api_base: fake.url,
      api_key_env: 'ANT_KEY',
    });
    app = await startApp(
      {
        models: [
          anthropic('one', one),
          anthropic('other', other),
          { id: 'deep', provider: 'openai', model_name: 'deepseek-reasoner', api_base: deepseek.url, api_key_env: 'ANT_KEY' },
          { id: 'mixed', failover: { strategy: 'weighted_round_robin', upstreams: ['one', 'other', 'deep'].map((target) => ({ target, weight: 1 })) } },
        ],
        tools: [{ id: 'order.query', endpoint: `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`, side_effects: false }],
      },
      { env: { ANT_KEY: 'sk-ant' } },
    );
  });
  after(async () => {
    await app.stop();
    await Promise.all([...claudes, deepseek].map((fake) => fake.close()));
    endpoint.closeAllConnections();
    endpoint.close();
  });

  const ask = (session: string | undefined, stream: boolean): Promise<Reply> =>
    app.chat({
      model: 'mixed',
      reasoning_effort: 'low',
      stream,
      tools: ['order.query'],
      messages: user('where is it?'),
      ...(session ? { session_id: session } : {}),
    });
  const signatures = ({ body }: AnthropicCall): unknown[] => body.messages.flatMap(({ content }) => content).flatMap((block) => block.signature ?? []);

  for (const [name, session, stream] of [
    ['whole', undefined, false],
    ['streamed', undefined, true],
    ['whole, in a session', 'w', false],
    ['streamed, in a session', 's', true],
  ] as const)
    test(`goes back to whoever made it, round by round: ${name}`, async () => {
      const before = claudes.map(({ calls }) => calls.length);
      const asked = deepseek.calls.length;
      for (let turn = 0; turn < 4; turn++) {
        const reply = await ask(session, stream);
        assert.match(saidIn(reply), /says it is shipped\.$/, reply.text);
      }
      // A vendor's fake refuses signatures that it has not made.
      for (const { violations } of claudes) assert.deepEqual(violations, []);
      const sent = claudes.map(({ calls }, index) => calls.slice(before[index]).flatMap(signatures));
      const thoughts = deepseek.calls.slice(asked).map(({ body }) => body.messages.flatMap((message) => message.reasoning_content ?? []));
      for (const thought of thoughts.flat()) assert.match(String(thought), /^deepseek/);
      if (session === undefined) return;
      // Sixteen calls over three vendors: each has met its own rounds again.
      for (const own of sent) assert.ok(own.length > 0, 'its own signed thinking never came back');
      assert.ok((thoughts.at(-1)?.length ?? 0) > 1, 'its own reasoning never came back');
    });
});
