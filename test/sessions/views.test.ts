import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createAdmin } from '../../src/admin/admin.ts';
import { sessionRoutes } from '../../src/admin/sessions.ts';
import type { AdminReply, AdminRequest } from '../../src/contracts/admin.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import { environment } from '../stores/fixture.ts';
import { type House, house, sharedContext, streams, system, user } from './session-kit.ts';

describe('sessions as operators see them', () => {
  let h: House;
  let ask: (method: string, path: string) => Promise<AdminReply | undefined>;
  before(async () => {
    h = await house();
    const admin = createAdmin(sessionRoutes({ cold: h.cold, environment, forget: h.room.forget }));
    ask = (method, path) => {
      const url = new URL(path, 'http://x');
      return admin({ method, path: url.pathname, query: url.searchParams, body: undefined, exchange: h.exchange(undefined) } satisfies AdminRequest);
    };
    await h.say('a', '', { messages: [system('be kind'), user('one')] });
    await h.say('a', 'long', { model: () => streams('some ', 'text', '.stop'), stream: true, leaveAfter: 1 });
    await h.say('odd/id ?', 'one', { project: 'other' });
  });
  after(async () => {
    await h.close();
    await sharedContext.close();
  });
  const bodyOf = async (method: string, path: string): Promise<Record<string, unknown>> => (await ask(method, path))?.body as Record<string, unknown>;

  it('are listed, paged and by project', async () => {
    const first = await bodyOf('GET', '/admin/sessions?limit=1');
    assert.equal((first.data as unknown[]).length, 1);
    const second = await bodyOf('GET', `/admin/sessions?limit=1&cursor=${first.next_cursor}`);
    const ids = [first, second].flatMap(({ data }) => (data as { session_id: string }[]).map(({ session_id }) => session_id));
    assert.deepEqual(ids.sort(), ['a', 'odd/id ?']);
    assert.equal(((await bodyOf('GET', '/admin/sessions?project=other')).data as unknown[]).length, 1);
  });

  it('are shown with messages, marks, counts and the asking key’s project by default', async () => {
    const view = await bodyOf('GET', '/admin/sessions/a');
    assert.equal(view.project, 'shop');
    assert.equal(view.total_messages, 4);
    assert.deepEqual(
      (view.system as { content: string }[]).map(({ content }) => content),
      ['be kind'],
    );
    const messages = view.messages as { role: string; content: string; tokens: number; partial?: boolean }[];
    assert.deepEqual(
      messages.map(({ role, content, partial }) => [role, content, partial]),
      [
        ['user', 'one', undefined],
        ['assistant', 're: one', undefined],
        ['user', 'long', undefined],
        ['assistant', 'some ', true],
      ],
    );
    assert.ok(messages.every(({ tokens }) => tokens > 4));
    for (const field of ['tokens', 'calls', 'cost_usd']) assert.equal(typeof view[field], 'number', field);
    assert.equal((await bodyOf('GET', '/admin/sessions/odd%2Fid%20%3F?project=other')).session_id, 'odd/id ?');
  });

  it('are exported whole, one message a line', async () => {
    const reply = await ask('GET', '/admin/sessions/a/export');
    const lines = String(reply?.body).trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).content),
      ['be kind', 'one', 're: one', 'long', 'some '],
    );
  });

  it('are deleted, hot and cold; another project’s are not found', async () => {
    const missing = (thrown: unknown): boolean => thrown instanceof HermesError && thrown.status === 404 && thrown.code === 'session_not_found';
    await assert.rejects(ask('DELETE', '/admin/sessions/a?project=other'), missing);
    assert.equal((await bodyOf('DELETE', '/admin/sessions/a')).deleted, true);
    await assert.rejects(ask('GET', '/admin/sessions/a'), missing);
    await assert.rejects(ask('DELETE', '/admin/sessions/a'), missing);
    assert.deepEqual((await h.say('a', 'anew')).seen, ['u:anew']);
  });
});
