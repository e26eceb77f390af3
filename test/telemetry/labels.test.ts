import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Reply, startApp, user } from '../app-kit.ts';

const LANES = 20;

it('labels stay few: 10,000 distinct unknown models, users, sessions, services and paths add no series', async () => {
  const app = await startApp({ session: { storage: { hot_backend: 'memory' } } });
  try {
    const series = async (format = 'text/plain'): Promise<string[]> =>
      (await app.fetch('/metrics', { headers: { accept: format } })).text
        .split('\n')
        .filter((line) => line.startsWith('hermes_'))
        .map((line) => line.slice(0, line.lastIndexOf(' ')).replace(/ # .*/, ''));
    const kinds: ((at: number) => Promise<Reply>)[] = [
      (at) => app.chat({ messages: user('x'), model: `model-${at}` }),
      (at) => app.chat({ messages: user('x'), user: `user-${at}`, session_id: `session-${at}`, user_level: `level-${at}`, request_id: `request-${at}` }),
      (at) => app.chat({ messages: user('x'), service_type: `service-${at}`, project: `project-${at}` }, { 'user-agent': `agent-${at}` }),
      (at) => app.fetch(`/v1/path-${at}?query-${at}`),
      (at) => app.fetch(`/admin/path-${at}`),
    ];
    const send = (at: number): Promise<Reply> | undefined => kinds[at % kinds.length]?.(at);
    for (let at = 0; at < kinds.length; at++) await send(at);
    const before = await series();
    let next = kinds.length;
    const lane = async (): Promise<void> => {
      while (next < 10_000 + kinds.length) await send(next++);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    assert.deepEqual(await series(), before);
    const text = (await app.fetch('/metrics', { headers: { accept: 'application/openmetrics-text' } })).text;
    for (const made of ['model-', 'user-', 'session-', 'service-', 'path-', 'level-', 'project-', 'agent-']) assert.ok(!text.includes(`"${made}`), made);
    assert.match(text, /^hermes_requests_total\{.*status="200"\} 2001$/m);
  } finally {
    await app.stop();
  }
});
