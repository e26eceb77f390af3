import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeConfig } from '../config/make-config.ts';
import { startStopwatch } from '../time-kit.ts';
import { type HttpMcp, startHttpMcp } from './mcp-fixture.ts';
import { call, type Instance, type InstanceOptions, instance, type Model, results, type Told, until } from './tools-kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'hermes-mcp-'));
const notes = join(folder, 'notes');
writeFileSync(notes, '');
const noted = (): string[] => readFileSync(notes, 'utf8').split('\n').filter(Boolean);
const program = [process.execPath, '--import', 'tsx', fileURLToPath(new URL('./mcp-fixture.ts', import.meta.url)), notes];
const over = { stdio: { command: program, env: { GREETING: 'hello' } } };
const rule = ['files.*'];
const closing: (() => Promise<void>)[] = [];
after(async () => {
  await Promise.all(closing.map((close) => close()));
  rmSync(folder, { recursive: true, force: true });
});

async function start(mcp: object, model: Model, source: object = {}, options: Partial<InstanceOptions> = {}): Promise<Instance> {
  const made = await instance({ model, tools: [{ id: 'files', mcp, timeout_ms: 20_000, ...source }], ...options });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= made.close();
    return closed;
  };
  closing.push(close);
  return { ...made, close };
}
async function server(): Promise<HttpMcp> {
  const made = await startHttpMcp();
  closing.push(made.close);
  return made;
}
/** Calls one tool, then answers. */
const once =
  (name: string, args: object = {}): Model =>
  (_, round) =>
    round === 0 ? [call(`files.${name}`, args)] : 'done';
const state = (told: Told): string | undefined => told.facts.toolCalls?.[0]?.status;

describe('a program spoken to over its standard input and output', () => {
  test('its tools are on offer by the name of their source, each with its schema, and run', async () => {
    const house = await start(over.stdio, once('read', { path: '/a' }));
    const told = await house.tell('read it', { rule });
    assert.equal(told.text, 'done');
    assert.deepEqual(results(house.asked[1]), ['/a says hello ']);
    const names = house.asked[0]?.tools?.map((tool) => tool.function.name);
    assert.ok(names?.includes('files.read') && names.includes('files.write'), String(names));
    const schema = house.asked[0]?.tools?.find((tool) => tool.function.name === 'files.read')?.function.parameters as { properties: object };
    assert.deepEqual(Object.keys(schema.properties), ['path', 'line']);
    assert.match(noted()[0] ?? '', /^read \/a {2}[0-9a-f-]{36}$/, 'the id of the action goes along');
  });

  test('it sees no secret of ours', async () => {
    process.env.HERMES_TEST_SECRET = 'sk-ours';
    const house = await start(over.stdio, once('read', { path: '/b' }));
    await house.tell('read it', { rule });
    delete process.env.HERMES_TEST_SECRET;
    assert.deepEqual(results(house.asked[1]), ['/b says hello ']);
  });

  test('a program that dies in a call leaves its outcome unknown, is not asked again, and is started anew for the next', async () => {
    const house = await start(over.stdio, (_, round) => (round === 0 ? [call('files.die', {})] : round === 1 ? [call('files.read', { path: '/c' })] : 'done'), {
      retries: 0,
    });
    const told = await house.tell('break it', { rule, ask: { requestId: 'dies' } });
    assert.equal(told.text, 'done');
    assert.match(results(house.asked[1])[0] ?? '', /outcome of this call is unknown/);
    assert.match(results(house.asked[2])[1] ?? '', /hello/);
    assert.equal(noted().filter((line) => line === 'die').length, 1);
    assert.ok(house.log.lines.some(({ message }) => message === 'the connection to an MCP server was lost'));
  });

  test('one that is slow to start holds up no request that does not name it, and one that does no longer than its time', async () => {
    const slow = { command: [process.execPath, '-e', 'process.stdin.resume(); setTimeout(() => 0, 30000)'] };
    const patient = await start(slow, () => 'answered', { timeout_ms: 25_000 });
    const watch = startStopwatch();
    assert.equal((await patient.tell('another', { rule: ['order.*', 'filesystem.read'] })).text, 'answered');
    assert.ok(watch.ms() < 12_000, `${watch.ms()} ms`);
    const house = await start(slow, () => 'answered', { timeout_ms: 200 });
    const began = performance.now();
    assert.equal((await house.tell('this one', { rule })).text, 'answered');
    assert.ok(performance.now() - began > 190);
    // Nor does it hold up the end, though it would be there for half a minute.
    await Promise.all([patient.close(), house.close()]);
    assert.ok(watch.stop() < 12_000, `${watch.ms()} ms`);
  });

  test('one that cannot be started leaves its tools unavailable, and says why in the log', async () => {
    const house = await start({ command: ['/nowhere/no-such-program'] }, () => 'no tools', {});
    const told = await house.tell('read it', { ask: { tools: ['files.read'] }, rule: null });
    assert.equal(told.text, 'no tools');
    assert.deepEqual(told.facts.unavailableTools, ['files.read']);
    assert.ok(house.log.lines.some(({ message }) => message.startsWith('an MCP server is away')));
  });
});

describe('a server over streamable HTTP', () => {
  test('it gets its token, and its tools run', async () => {
    const mcp = await server();
    const house = await start(
      { url: mcp.url, secret_env: 'MCP_TOKEN', headers: { 'x-team': 'shop' } },
      once('read', { path: '/h', line: 7 }),
      {},
      { env: { MCP_TOKEN: 'tok-1' } },
    );
    const told = await house.tell('read it', { rule, stream: true });
    assert.equal(told.text, 'done');
    assert.equal(mcp.lines.length, 1);
    assert.ok(mcp.seen.every((headers) => headers.authorization === 'Bearer tok-1' && headers['x-team'] === 'shop'));
  });

  test('a long integer keeps its digits', async () => {
    const mcp = await server();
    const house = await start({ url: mcp.url }, once('read', '{"path":"/x","line":9007199254740993}' as unknown as object));
    await house.tell('read it', { rule });
    assert.match(mcp.lines[0] ?? '', /^read \/x 9007199254740993 /);
  });

  test('a server that was restarted is spoken to again, and the call runs once', async () => {
    const mcp = await server();
    const house = await start({ url: mcp.url }, once('write', { path: '/w' }));
    await house.tell('one', { rule });
    mcp.forget();
    const told = await house.tell('two', { rule });
    assert.equal(state(told), 'ok');
    assert.equal(mcp.lines.filter((line) => line === 'write /w').length, 2);
  });

  test('one that is away is an honest failure of the call, and one that came back is used', async () => {
    const mcp = await startHttpMcp();
    const house = await start({ url: mcp.url }, once('read', { path: '/g' }));
    await house.tell('one', { rule });
    await mcp.close();
    const gone = await house.tell('two', { rule });
    assert.equal(state(gone), 'error');
    const again = await startHttpMcp(Number(new URL(mcp.url).port));
    closing.push(again.close);
    await until(async () => state(await house.tell('three', { rule })) === 'ok');
  });

  test('a tool that fails, one that stalls and one that answers with a picture are told to the model as such', async () => {
    const mcp = await server();
    const model: Model = (_, round) => (round === 0 ? [call('files.fail', {}, 'a'), call('files.stall', {}, 'b'), call('files.picture', {}, 'c')] : 'done');
    const house = await start({ url: mcp.url }, model, { timeout_ms: 1500 });
    const told = await house.tell('try', { rule });
    assert.deepEqual(
      told.facts.toolCalls?.map(({ status }) => status),
      ['error', 'timeout', 'ok'],
    );
    const [failed, , picture] = results(house.asked[1]);
    assert.match(failed ?? '', /no such file/);
    assert.equal(picture, '[image, image/png, not shown]');
  });

  test('a tool that the server adds later is on offer from then on', async () => {
    const mcp = await server();
    const house = await start({ url: mcp.url }, (exchange, round) =>
      round > 0 ? 'done' : [call(exchange.request.tools?.some((tool) => tool.function.name === 'files.late') ? 'files.late' : 'files.more', {})],
    );
    await house.tell('more', { rule });
    await until(async () => (await house.tell('late', { rule })).facts.toolCalls?.[0]?.tool === 'files.late');
  });
});

describe('permissions and side effects are those of any tool', () => {
  test('a tool that is not marked as reading changes something: its call is claimed, and a repeat gets its result', async () => {
    const mcp = await server();
    let broken = true;
    const house = await start({ url: mcp.url }, (_, round) => {
      if (round === 0) return [call('files.write', { path: '/once' })];
      if (broken) throw new Error('the model broke');
      return 'done';
    });
    await house.tell('write', { rule, ask: { requestId: 'w1' } });
    broken = false;
    const told = await house.tell('write', { rule, ask: { requestId: 'w1' } });
    assert.equal(told.text, 'done');
    assert.deepEqual(mcp.lines, ['write /once']);
  });

  test('the rule, the key and the source’s own allow decide', async () => {
    const mcp = await server();
    const house = await start({ url: mcp.url }, () => 'ok', { allow: { user_levels: ['vip'] } });
    const offered = async (asked: object): Promise<string[]> => {
      await house.tell('x', { userLevel: 'vip', ...asked });
      return (house.asked.at(-1)?.tools ?? []).map((tool) => tool.function.name).filter((name) => name.startsWith('files.'));
    };
    assert.deepEqual(await offered({ rule: ['files.read'] }), ['files.read']);
    assert.deepEqual(await offered({ rule, keyTools: ['files.w*'] }), ['files.write']);
    assert.deepEqual(await offered({ rule, userLevel: 'guest' }), []);
    assert.deepEqual(await offered({ rule: ['order.*'], ask: { tools: ['files.read'] } }), []);
    assert.deepEqual(await offered({ rule, ask: { tools: ['files.read', 'files.write'] } }), ['files.read', 'files.write']);
  });

  test('params that do not fit the server’s schema are not sent', async () => {
    const mcp = await server();
    const house = await start({ url: mcp.url }, once('read', { path: 7 }));
    const told = await house.tell('read', { rule });
    assert.equal(state(told), 'invalid');
    assert.deepEqual(mcp.lines, []);
  });
});

test('an entry is an endpoint or a server, and a server is a program or an address', () => {
  const wrong = (tool: object): string => {
    try {
      makeConfig({ tools: [{ id: 't', ...tool }] });
      return '';
    } catch (thrown) {
      return String((thrown as Error).message);
    }
  };
  assert.match(wrong({}), /endpoint/);
  assert.match(wrong({ endpoint: 'http://h/t', mcp: { url: 'http://h/mcp' } }), /does not go with `mcp`/);
  assert.match(wrong({ mcp: {} }), /needs `command` or `url`/);
  assert.match(wrong({ mcp: { url: 'http://h/mcp', command: ['x'] } }), /give one/);
  assert.match(wrong({ mcp: { url: 'http://h/mcp', secret_env: 'NOT_THERE' } }), /NOT_THERE is not set/);
  assert.match(wrong({ endpoint: 'http://h/t', parameters: { type: 'objekt' } }), /no JSON Schema/);
  assert.equal(wrong({ mcp: { url: 'http://h/mcp' } }), '');
});
