import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { startApp } from '../app-kit.ts';

describe('a stop', () => {
  it('does not wait for connections that never said anything, nor for idle ones', async () => {
    const running = await startApp({ server: { drain_timeout_ms: 60_000 } });
    const [silent, idle] = [connect(running.app.port, '127.0.0.1'), connect(running.app.port, '127.0.0.1')];
    for (const socket of [silent, idle]) socket.on('error', () => undefined);
    await Promise.all([once(silent, 'connect'), once(idle, 'connect')]);
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(idle, 'data');
    const closed = Promise.all([once(silent, 'close'), once(idle, 'close')]);
    for (const socket of [silent, idle]) socket.resume();
    await running.stop();
    await closed;
    assert.ok(silent.destroyed && idle.destroyed);
  });
});
