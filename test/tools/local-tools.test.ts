import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Reply, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { until } from './tools-kit.ts';

const README = readFileSync(new URL('../../plugins/README.md', import.meta.url), 'utf8');
const STOCK = /```js tool=stock\.mjs\n([\s\S]*?)```/.exec(README)?.[1] ?? '';

/** Every kind of end that a function can have; `seen` says what it was called with. */
const KINDS = `
const seen = [];
export default {
  name: 'kinds',
  setup(hermes) {
    const add = (id, run, more = {}) => hermes.addTool({ id, side_effects: false, run, ...more });
    add('say.text', () => 'plain text');
    add('say.nothing', () => undefined);
    add('say.long', (params) => params.id);
    add('throw.now', () => { throw new Error('the shelf fell over'); });
    add('throw.later', async () => { throw 'just text'; }, { retries: 2, dedupe: undefined });
    add('too.slow', (params, { signal }) => new Promise((resolve, reject) => signal.addEventListener('abort', () => { seen.push('aborted'); reject(new Error('late')); })), { timeout_ms: 50 });
    add('too.large', () => 'x'.repeat(5_000_000));
    add('only.vip', () => 'secret shelf', { allow: { user_levels: ['vip'] } });
    add('refund.local', (params, call) => { seen.push([params, call.requestId, call.sessionId, call.user]); return { refunded: params.order }; }, { side_effects: true });
    hermes.addMatcher('never', { compile: () => ({ test: () => false, explain: () => ({ hit: false, why: 'never' }) }) });
  },
  handle(exchange, next) {
    if (exchange.headers['x-seen'] === undefined) return next();
    exchange.answer = { status: 200, headers: {}, body: { seen } };
  },
};
`;
const ask = (tool: string, args: object | string = {}): ReturnType<typeof user> =>
  user(`[[tool ${tool} ${typeof args === 'string' ? args : JSON.stringify(args)}]]`);
interface Told {
  tool: string;
  status: string;
}
const calls = (reply: Reply): Told[] =>
  ((reply.json as { hermes?: { tool_calls?: Told[] } }).hermes?.tool_calls ?? []).map(({ tool, status }) => ({ tool, status }));

describe('tools that plugins add', () => {
  let app: RunningApp;
  const tools = ['stock.count', 'say.*', 'throw.*', 'too.*', 'only.vip', 'refund.local'];
  const call = (tool: string, args: object | string = {}, more: object = {}): Promise<Reply> => app.chat({ messages: ask(tool, args), tools: [tool], ...more });
  before(async () => {
    app = await startApp({ route_rules: [{ id: 'all', match: '.*', model: 'fast_model', tools }] }, { files: { 'stock.mjs': STOCK, 'kinds.mjs': KINDS } });
  });
  after(() => app.stop());

  it('run in hermes itself, and the model reads what they gave', async () => {
    const reply = await call('stock.count', { sku: 'A-100' });
    assert.deepEqual(calls(reply), [{ tool: 'stock.count', status: 'ok' }], reply.text);
    assert.match(saidIn(reply), /count is 7/);
    assert.match(saidIn(await call('stock.count', { sku: 'A-100' }, { stream: true })), /count is 7/);
    assert.match(saidIn(await call('say.text')), /plain text/);
    assert.match(saidIn(await call('say.nothing')), /ok is true/);
  });

  it('get params that fit their schema, long integers as text', async () => {
    assert.match(saidIn(await call('stock.count', { sku: 7 })), /do not fit the tool's schema/);
    assert.match(saidIn(await call('say.long', '{"id":12345678901234567890}')), /12345678901234567890/);
  });

  it('fail by what they throw, in time and in size, and the request does not', async () => {
    const kinds: [string, RegExp, string][] = [
      ['throw.now', /The tool failed: the shelf fell over/, 'error'],
      ['throw.later', /The tool failed: just text/, 'error'],
      ['too.slow', /did not answer within 50 ms/, 'timeout'],
      ['too.large', /larger than 4194304 bytes/, 'error'],
    ];
    for (const [tool, said, status] of kinds) {
      const reply = await call(tool);
      assert.equal(reply.status, 200, reply.text);
      assert.match(saidIn(reply), said);
      assert.deepEqual(calls(reply), [{ tool, status }]);
    }
    await until(async () => (await app.chat({ messages: user('hi') }, { 'x-seen': '1' })).text.includes('"aborted"'));
  });

  it('are for those whom `allow` lets', async () => {
    const refused = (await call('only.vip', {}, { user_level: 'normal' })).json as { hermes?: { unavailable_tools?: string[] } };
    assert.deepEqual(refused.hermes?.unavailable_tools, ['only.vip']);
    assert.match(saidIn(await call('only.vip', {}, { user_level: 'vip' })), /secret shelf/);
  });

  it('run once where they change something, however often the request is repeated', async () => {
    const once = { request_id: 'refund-7', session_id: 's1', user: 'u1' };
    for (let nth = 0; nth < 3; nth++) assert.match(saidIn(await call('refund.local', { order: 'o1' }, once)), /refunded is o1/);
    const { seen } = (await app.chat({ messages: user('hi') }, { 'x-seen': '1' })).json as { seen?: unknown[] };
    const runs = (seen ?? []).filter(Array.isArray);
    assert.equal(runs.length, 1);
    assert.deepEqual([runs[0]?.[0], typeof runs[0]?.[1], runs[0]?.[2], runs[0]?.[3]], [{ order: 'o1' }, 'string', 's1', 'u1']);
  });

  it('are listed with the others, and are there after a reload', async () => {
    const list = async (): Promise<string[]> => ((await app.fetch('/admin/tools')).json as { data: { id: string }[] }).data.map(({ id }) => id);
    assert.ok((await list()).includes('stock.count'));
    const file = join(app.folder, 'hermes.yaml');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), tools_max_rounds: 3 }));
    assert.equal((await app.post('/admin/reload', {})).status, 200);
    assert.ok((await list()).includes('stock.count'));
    assert.match(saidIn(await call('stock.count', { sku: 'A-100' })), /count is 7/);
  });
});

describe('a tool that a plugin adds wrongly', () => {
  const adding = (tool: string): Record<string, string> => ({ 'bad.mjs': `export default { name: 'bad', setup(hermes) { hermes.addTool(${tool}); } };` });
  const wrong: [string, RegExp][] = [
    ['{ id: "a.b" }', /bad\.mjs.*addTool: run must be a function/],
    ['{ id: "a.b", run() {}, timeout: 5 }', /addTool: timeout is not known here \(did you mean `timeout_ms`\?\)/],
    ['{ run() {}, retries: -1 }', /addTool: id is missing; retries must be at least 0/],
    ['{ id: "a.b", run() {}, parameters: { type: "objekt" } }', /addTool: parameters is no JSON Schema/],
    ['7', /addTool: the tool must be a block of keys/],
  ];
  for (const [tool, said] of wrong) it(`stops the start with its file named: ${tool}`, () => assert.rejects(startApp({}, { files: adding(tool) }), said));

  it('and so does one that another has added', () =>
    assert.rejects(
      startApp(
        {},
        {
          files: {
            ...adding('{ id: "a.b", run() {} }'),
            'other.mjs': `export default { name: 'other', setup(hermes) { hermes.addTool({ id: 'a.b', run() {} }); } };`,
          },
        },
      ),
      /the tool "a\.b" has been added already, by .*bad\.mjs/,
    ));

  it('but the configuration’s own of that name wins, with a warning', async () => {
    const app = await startApp({ tools: [{ id: 'a.b', endpoint: 'http://127.0.0.1:9/', side_effects: false }] }, { files: adding('{ id: "a.b", run() {} }') });
    assert.equal(app.lines.filter(({ message, tool }) => tool === 'a.b' && message.includes('takes the place')).length, 1);
    await app.stop();
  });
});

it('a rule whose tool neither the file nor a plugin defines is warned of once all are set up', async () => {
  const app = await startApp(
    { route_rules: [{ id: 'all', match: '.*', model: 'fast_model', tools: ['stock.count', 'stock.sum'] }] },
    { files: { 'stock.mjs': STOCK } },
  );
  const warned = app.lines.filter(({ level, message }) => level === 'warn' && message.includes('nothing defines the tool'));
  assert.equal(warned.length, 1);
  assert.match(warned[0]?.message ?? '', /hermes\.yaml:1:\d+ route_rules\[0\]\.tools: nothing defines the tool `stock\.sum`: it will not be available$/);
  await app.stop();
});
