import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEY, user } from '../app-kit.ts';
import { startGateway } from '../process-kit.ts';
import { seeded } from './ills.ts';

const KILLS = 2;
const CLIENTS = 12;
/** Seen before each kill, however long they take. */
const ANSWERS = 60;

test('a gateway killed with SIGKILL has every call in its books whose answer was seen, once', async () => {
  const gateway = await startGateway({
    models: [{ id: 'm', provider: 'simulator', pricing: { input_per_million: 1, output_per_million: 2 } }],
    limits: [],
  });
  const random = seeded(6);
  let [seen, asked, going] = [0, 0, true];
  const client = async (number: number): Promise<void> => {
    for (let turn = 0; going; turn++) {
      asked++;
      try {
        const stream = turn % 2 === 0;
        const response = await gateway.post({ stream, user: `u${number}`, messages: user(`[[say ${number}]] hello`) }, AbortSignal.timeout(20_000));
        const text = await response.text();
        if (response.status === 200 && (stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}'))) seen++;
      } catch {
        await sleep(30);
      }
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
  for (let kill = 0; kill < KILLS; kill++) {
    const before = seen;
    while (seen < before + ANSWERS) await sleep(20);
    // Between two writes of the books, wherever that is.
    await sleep(random() * 400);
    await gateway.kill();
    await gateway.start();
  }
  going = false;
  await Promise.all(clients);
  await gateway.kill();
  await gateway.start();
  const response = await fetch(`${gateway.base}/admin/costs?day=today`, { headers: { authorization: `Bearer ${KEY}` } });
  const { total } = (await response.json()) as { total: { calls: number; cost_nano_usd: number } };
  await gateway.stop();
  assert.ok(total.calls >= seen, `${seen} answers were seen, ${total.calls} calls are booked`);
  assert.ok(total.calls <= asked, `${asked} calls were made, ${total.calls} are booked`);
});
