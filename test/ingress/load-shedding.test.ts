import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startApp, user } from '../app-kit.ts';
import { until } from '../services.ts';

/** Keeps the event loop late until it is told to stop: every turn takes this long. */
function beBusy(turnMs: number): () => void {
  const timer = setInterval(() => {
    for (const end = performance.now() + turnMs; performance.now() < end; );
  }, 1);
  return () => clearInterval(timer);
}

it('a gateway whose event loop is late refuses chats at once, serves what costs nothing, and takes chats again when it has time', async () => {
  const app = await startApp({ server: { max_event_loop_delay_ms: 400 } });
  assert.equal((await app.chat({ messages: user('1') })).status, 200);
  const stop = beBusy(800);
  try {
    await until(async () => (await app.chat({ messages: user('2') })).status === 503, 'no chat was refused', 30_000);
    const refused = await app.chat({ messages: user('3') });
    assert.deepEqual([refused.json.error?.code, refused.headers.get('retry-after')], ['overloaded', '1']);
    assert.equal((await app.fetch('/healthz')).status, 200);
    assert.equal((await app.fetch('/v1/models')).status, 200);
    assert.match((await app.fetch('/metrics')).text, /^hermes_requests_shed_total\{reason="event_loop"\} \d+$/m);
  } finally {
    stop();
  }
  await until(async () => (await app.chat({ messages: user('4') })).status === 200, 'no chat was taken again', 30_000);
  await app.stop();
});

it('one long turn is no overload', async () => {
  const app = await startApp({ server: { max_event_loop_delay_ms: 400 } });
  await app.chat({ messages: user('1') });
  for (let round = 0; round < 3; round++) {
    const stop = beBusy(100);
    await sleep(1);
    stop();
    assert.equal((await app.chat({ messages: user('2') })).status, 200);
  }
  await app.stop();
});
