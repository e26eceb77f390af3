import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, it } from 'node:test';
import { user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { startInstance } from '../operations/instance.ts';
import { until } from '../services.ts';
import { HEADERS } from './machine-world.ts';
import { createNetwork, networkMissing } from './network.ts';

const STREAMS = 8;
const PIECE = 'x'.repeat(16_000);

describe('clients whose machine is gone from the wire', { skip: networkMissing() ?? false, timeout: 60_000 }, () => {
  it('never say goodbye, and are let go all the same: no upstream call and no request stays open', async () => {
    const [network, upstream] = [await createNetwork(1), await createFakeUpstream()];
    upstream.on('m', async (reply) => {
      reply.open();
      for (let i = 0; i < 20_000 && !reply.response.destroyed; i++) {
        const chunk = {
          id: 'c',
          object: 'chat.completion.chunk',
          created: 1,
          model: 'm',
          choices: [{ index: 0, delta: { content: PIECE }, finish_reason: null }],
        };
        if (!reply.response.write(`data: ${JSON.stringify(chunk)}\n\n`))
          await new Promise((resolve) => reply.response.once('drain', resolve).once('close', resolve));
      }
    });
    const models = [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }];
    const instance = await startInstance({ server: { write_timeout_ms: 1500 }, models }, { host: '0.0.0.0', reachedAt: network.address('clients') });
    const ask = { method: 'POST', headers: HEADERS, body: JSON.stringify({ model: 'm', stream: true, messages: user('a flood') }) };
    const script = `for (let i = 0; i < ${STREAMS}; i++) fetch(${JSON.stringify(`${instance.base}/v1/chat/completions`)}, ${JSON.stringify(ask)})
      .then(async ({ body }) => { for await (const part of body) process.stdout.write('.'); });`;
    const [program = '', ...words] = [...network.wrapper(0), process.execPath, '-e', script];
    const client = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    let heard = 0;
    client.stdout.on('data', (data: Buffer) => (heard += data.length));
    try {
      await until(() => heard > 50 && upstream.calls.length === STREAMS, 'the streams did not begin', 15_000);
      network.unplug(0);
      await upstream.until(() => upstream.calls.every(({ aborted }) => aborted), 20_000);
      await until(async () => /^hermes_requests_in_flight 0$/m.test(await (await fetch(`${instance.base}/metrics`)).text()), 'requests are in flight', 5000);
    } finally {
      client.kill('SIGKILL');
      instance.kill('SIGKILL');
      await upstream.close();
      await network.close();
    }
    assert.equal(upstream.calls.length, STREAMS);
  });
});
