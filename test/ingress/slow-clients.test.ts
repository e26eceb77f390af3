import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { head, openSocket, type RawSocket } from './raw-socket.ts';

const median = (list: number[]): number => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] as number;

describe('slow clients', () => {
  let app: RunningApp;
  let upstream: FakeUpstream;
  before(async () => {
    upstream = await createFakeUpstream();
    app = await startApp(
      {
        server: { header_timeout_ms: 700, request_timeout_ms: 1500, keep_alive_timeout_ms: 1500, write_timeout_ms: 600 },
        models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }],
      },
      { env: { UP_KEY: 'sk-up' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const body = JSON.stringify({ messages: user('hi') });

  it('that never finish their headers get 408 and lose the connection', async () => {
    const raw = await openSocket(app.app.port);
    const began = performance.now();
    raw.send('POST /v1/chat/completions HTTP/1.1\r\nHost: hermes\r\nX-Slow: ');
    const drip = setInterval(() => raw.send('a'), 50);
    await raw.until(() => raw.closed);
    clearInterval(drip);
    assert.ok(performance.now() - began > 600);
    assert.deepEqual(raw.statuses(), [408]);
    assert.match(raw.text, /"code":"request_timeout"/);
  });
  it('that never finish their body lose the connection, too', async () => {
    const raw = await openSocket(app.app.port);
    raw.send(`${head(['Content-Length: 100000'])}{"messages":`);
    const drip = setInterval(() => raw.send(' '), 50);
    await raw.until(() => raw.closed);
    clearInterval(drip);
    assert.ok(
      raw.statuses().every((status) => status === 408),
      raw.text.slice(0, 80),
    );
  });
  it('are let go when they stay idle, and keep their connection while they are not', async () => {
    const raw = await openSocket(app.app.port);
    for (let i = 0; i < 3; i++) {
      raw.send(head([`Content-Length: ${body.length}`]) + body);
      await raw.until(() => raw.statuses().length === i + 1);
      await sleep(600);
    }
    assert.equal(raw.closed, false);
    await raw.until(() => raw.closed);
    assert.deepEqual(raw.statuses(), [200, 200, 200]);
  });
  it('two hundred of them do not slow the others down', async () => {
    const timed = async (): Promise<number> => {
      const began = performance.now();
      assert.equal((await app.chat({ messages: user('quick') })).status, 200);
      return performance.now() - began;
    };
    for (let i = 0; i < 5; i++) await timed();
    const before: number[] = [];
    for (let i = 0; i < 15; i++) before.push(await timed());
    const slow: RawSocket[] = await Promise.all(Array.from({ length: 200 }, () => openSocket(app.app.port)));
    for (const [index, raw] of slow.entries()) raw.send(index % 2 ? 'POST /v1/chat HTTP/1.1\r\nX-Slow: ' : `${head(['Content-Length: 9000'])}{`);
    const during: number[] = [];
    for (let i = 0; i < 15; i++) during.push(await timed());
    for (const raw of slow) raw.socket.destroy();
    assert.ok(median(during) < median(before) * 6 + 50, `${median(before)} ms before, ${median(during)} ms with them`);
  });
  it('that read nothing hold their upstream back, and are cut off in the end', async () => {
    const piece = 'x'.repeat(16_000);
    let sent = 0;
    upstream.on('m', async (reply) => {
      reply.open();
      const { response } = reply;
      for (let i = 0; i < 6000 && !response.destroyed; i++) {
        sent += piece.length;
        const more = response.write(
          `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: piece }, finish_reason: null }] })}\n\n`,
        );
        if (!more) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
      }
    });
    const raw = await openSocket(app.app.port);
    raw.socket.pause();
    const asked = JSON.stringify({ messages: user('a flood'), stream: true });
    raw.send(head([`Content-Length: ${asked.length}`]) + asked);
    await upstream.until(() => sent > 1_000_000);
    await upstream.until(() => upstream.calls.at(-1)?.aborted === true);
    assert.ok(sent < 40e6, `${sent} of 96,000,000 bytes were taken in`);
    raw.socket.destroy();
  });
});
