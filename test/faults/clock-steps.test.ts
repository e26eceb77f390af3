import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { startInstance } from '../operations/instance.ts';
import { temporaryFolder, until } from '../services.ts';
import { clockMissing, createClock } from './clock.ts';
import { HEADERS } from './machine-world.ts';

const HOURS = 2 * 3600;

describe('a wall clock that is set back by two hours', { skip: clockMissing() ?? false, timeout: 60_000 }, () => {
  it('prolongs neither a set-aside upstream nor an empty bucket', async () => {
    const upstream = await createFakeUpstream();
    let limited = true;
    upstream.on('m', (reply) => (limited ? reply.error(429, 'slow down', { headers: { 'retry-after': '1' } }) : reply.completion({ content: 'again' })));
    const clock = createClock(temporaryFolder());
    const model = (id: string, name: string): object => ({ id, provider: 'openai', model_name: name, api_base: upstream.url, api_key_env: 'UP_KEY' });
    const instance = await startInstance(
      {
        models: [{ ...model('m', 'm'), failover: { max_attempts: 1, max_retry_after_ms: 0 } }, model('free', 'free')],
        default_model: 'm',
        limits: [{ per: 'user', requests_per_minute: 60, burst: 1 }],
      },
      { env: clock.env },
    );
    const ask = async (name: string, from: string): Promise<number> => {
      const body = JSON.stringify({ model: name, user: from, messages: user('hi') });
      const response = await fetch(`${instance.base}/v1/chat/completions`, { method: 'POST', headers: HEADERS, body });
      await response.arrayBuffer();
      return response.status;
    };
    const wallClock = async (): Promise<number> => Date.parse((await fetch(`${instance.base}/healthz`)).headers.get('date') ?? '');
    try {
      assert.equal(await ask('m', 'a'), 429);
      assert.deepEqual([await ask('free', 'b'), await ask('free', 'b')], [200, 429]);
      clock.step(-HOURS);
      await until(async () => (await wallClock()) < Date.now() - HOURS * 500, 'the clock was not set back');
      limited = false;
      await sleep(1200);
      assert.equal(await ask('m', 'c'), 200);
      assert.equal(await ask('free', 'b'), 200);
    } finally {
      instance.kill('SIGKILL');
      await upstream.close();
    }
  });
});
