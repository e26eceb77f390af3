import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { createFakeAnthropic } from '../providers/fake-anthropic.ts';
import { temporaryFolder } from '../services.ts';

const REPORT = '第三季度销售报告：华东区增长 18%，华南区下降 4%。';

test('我刚才说的那个报告呢: after a restart and a switch of the model the upstream receives the turn with the report', async () => {
  const openai = await createFakeUpstream();
  const anthropic = await createFakeAnthropic(() => [{ type: 'text', text: '您说的是第三季度销售报告。' }]);
  openai.on('gpt', (reply) => reply.completion({ content: '报告已收到。' }));
  const config = {
    models: [
      { id: 'gpt', provider: 'openai', api_base: openai.url, api_key_env: 'OPENAI' },
      { id: 'claude', provider: 'anthropic', api_base: anthropic.url, api_key_env: 'ANT', max_tokens: 500 },
    ],
  };
  const options = { env: { OPENAI: 'sk-up', ANT: 'sk-ant', DATABASE_URL: `sqlite:///${join(temporaryFolder(), 'hermes.db')}` } };

  const first = await startApp(config, options);
  await first.chat({ session_id: 'user-3421', prefer_model: 'gpt', messages: user(REPORT) });
  await first.stop();

  const second = await startApp(config, options);
  const reply = await second.chat({ session_id: 'user-3421', prefer_model: 'claude', stream: true, messages: user('我刚才说的那个报告呢') });
  assert.equal(saidIn(reply), '您说的是第三季度销售报告。');
  const [call] = anthropic.calls;
  assert.deepEqual(
    call?.body.messages.map(({ role, content }) => [role, content.map(({ text }) => text).join('')]),
    [
      ['user', REPORT],
      ['assistant', '报告已收到。'],
      ['user', '我刚才说的那个报告呢'],
    ],
  );
  assert.deepEqual(anthropic.violations, []);
  await second.stop();
  await Promise.all([openai.close(), anthropic.close()]);
});
