import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { printTrace, printTraceLine, type TraceView } from '../../src/cli/trace-print.ts';
import { KEY, type Reply, startApp, user } from '../app-kit.ts';
import { type BusyApp, startBusyApp } from '../telemetry/busy-app.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = async (args: string[], env: Record<string, string> = {}): Promise<{ out: string; err: string; code: number }> => {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', 'src/main.ts', 'trace', ...args], {
      cwd: root,
      env: { PATH: process.env.PATH, API_KEY: KEY, ...env },
    });
    return { out: stdout, err: stderr, code: 0 };
  } catch (thrown) {
    const { stdout, stderr, code } = thrown as { stdout: string; stderr: string; code: number };
    return { out: stdout, err: stderr, code };
  }
};
const idOf = (reply: Reply): string => reply.headers.get('x-request-id') ?? '';

describe('hermes-cli trace', () => {
  let app: BusyApp;
  let answer: Reply;
  before(async () => {
    app = await startBusyApp();
    await app.traffic(1);
    answer = await app.chat({ messages: user('where is order 7? [[tool order.query {"order_id":"7"}]]'), request_id: 'my-own-name' });
  });
  after(() => app.stop());

  it('shows the waterfall of a request by its x-request-id, and by the name its caller gave it', async () => {
    const { out, code } = await run(['show', idOf(answer), '--url', app.base]);
    assert.equal(code, 0);
    assert.match(out, /POST \/v1\/chat\/completions → 200 in [\d.]+ m?s/);
    assert.match(out, /route order_query {3}model fast_model/);
    assert.match(out, /^tool order\.query +│ *[█▏]+ *│ +[\d.]+ ms {2}status=ok tries=1 request_id=[0-9a-f-]{36}$/m);
    assert.equal([...out.matchAll(/^attempt /gm)].length, 2);
    const named = await run(['show', 'my-own-name', '--url', app.base, '--json']);
    assert.equal((JSON.parse(named.out) as TraceView).id, idOf(answer));
  });

  it('lists, filters and exports', async () => {
    const [list, exported, none] = await Promise.all([
      run(['list', '--url', app.base, '--route', 'order_query', '--limit', '2']),
      run(['export', '--url', app.base, '--status', '429']),
      run(['list', '--url', app.base, '--session', 'nobody']),
    ]);
    assert.equal(list.out.trim().split('\n').length, 2);
    assert.match(list.out, / 200 .* order_query {2}fast_model {2}\d+\+\d+ tokens/);
    const lines = exported.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceView);
    assert.ok(lines.length > 0 && lines.every(({ status }) => status === 429));
    assert.equal(none.out, 'no traces\n');
  });

  it('follows what comes', async () => {
    const tailing = run(['tail', '--url', app.base, '--seconds', '5']);
    // However long the command takes to start: requests keep coming while it follows.
    let over = false;
    const ended = tailing.finally(() => {
      over = true;
    });
    const ids: string[] = [];
    while (!over) {
      ids.push(idOf(await app.chat({ messages: user('hello'), session_id: 'late' })));
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    const { out } = await ended;
    assert.ok(
      ids.some((id) => out.includes(id)),
      out,
    );
  });

  it('says in words what is not there', async () => {
    const unknown = await run(['show', 'no-such-trace', '--url', app.base]);
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /There is no trace of that id/);
    const away = await run(['show', 'x', '--url', 'http://127.0.0.1:9']);
    assert.match(away.err, /No gateway answers/);
  });
});

describe('hermes-cli trace without a running gateway', () => {
  it('reads the store', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-trace-'));
    try {
      const env = { DATABASE_URL: `sqlite:///${join(folder, 'hermes.db')}` };
      const app = await startApp({}, { env });
      const answer = await app.chat({ messages: user('hello') });
      const config = readFileSync(join(app.folder, 'hermes.yaml'), 'utf8');
      await app.stop();
      writeFileSync(join(folder, 'hermes.yaml'), config.replace(/"pipeline":\{[^}]*\},?/, ''));
      const { out, err } = await run(['show', idOf(answer), '--config', join(folder, 'hermes.yaml')], { ...env, PORT: '9' });
      assert.match(out, /→ 200/, err);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('a printed trace', () => {
  const view: TraceView = {
    id: 'i',
    trace_id: 't',
    request_id: 'i',
    started_at: '2026-11-30T18:00:00.000Z',
    duration_ms: 100,
    status: 200,
    route: 'default',
    model: 'm',
    service: 's',
    session_id: 'talk\u001b[31m\r\n',
    tokens: { input: 1, cached: 0, output: 2, reasoning: 0 },
    cost_usd: 0.5,
    spans: [
      { name: 'session', parent: null, start_ms: 0, duration_ms: 50, attributes: {} },
      { name: 'store read', parent: 'session', start_ms: 10, duration_ms: 20, attributes: { tier: 'hot' } },
      { name: 'attempt', parent: null, start_ms: 50, duration_ms: 50, attributes: { upstream: 'u' } },
    ],
    calls: [],
  };
  it('puts each step where it lies in the time', () => {
    const lines = printTrace(view).trimEnd().split('\n').slice(-3);
    assert.deepEqual(lines, [
      `session      │${'█'.repeat(20)}${' '.repeat(20)}│   50.0 ms`,
      `  store read │${' '.repeat(4)}${'█'.repeat(8)}${' '.repeat(28)}│   20.0 ms  tier=hot`,
      `attempt      │${' '.repeat(20)}${'█'.repeat(20)}│   50.0 ms  upstream=u`,
    ]);
  });
  it('lets no name move the cursor', () => {
    for (const text of [printTrace(view), printTraceLine(view)]) {
      assert.ok(!text.includes('\u001b') && !text.includes('\r'));
      assert.ok(text.includes('talk�[31m'));
    }
  });
});
