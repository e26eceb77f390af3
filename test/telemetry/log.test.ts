import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { withoutSecrets } from '../../src/telemetry/log.ts';
import { type LogLine, type Reply, type RunningApp, startApp, user } from '../app-kit.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = (code: string): { lines: Record<string, unknown>[]; status: number | null } => {
  const { stdout, status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', `import { createLog } from './src/telemetry/log.ts'; const log = createLog('info'); ${code}`],
    {
      cwd: root,
      encoding: 'utf8',
    },
  );
  const lines = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { lines, status };
};

describe('the log', () => {
  it('loses nothing when the process exits right after', () => {
    const { lines, status } = run(`for (let at = 0; at < 500; at++) log.info({ at }, 'line'); process.exit(3);`);
    assert.equal(status, 3);
    assert.equal(lines.length, 500);
    assert.deepEqual([lines[499]?.at, lines[499]?.msg, lines[499]?.level], [499, 'line', 30]);
  });
  it('loses nothing when the process dies of an exception', () => {
    const { lines, status } = run(`log.info({}, 'before'); setImmediate(() => { log.error({ err: new Error('broken') }, 'at'); throw new Error('fatal'); });`);
    assert.notEqual(status, 0);
    assert.deepEqual(lines.map(({ msg }) => msg).sort(), ['at', 'before']);
  });
  it('keeps the level', () => {
    assert.deepEqual(
      run(`log.debug({}, 'no'); log.warn({}, 'yes'); log.child({ request_id: 'r' }).info({}, 'child');`).lines.map(({ msg, request_id }) => [msg, request_id]),
      [
        ['yes', undefined],
        ['child', 'r'],
      ],
    );
  });
  it('is for reading in a terminal', () => {
    const code = `import { createLog } from './src/telemetry/log.ts'; createLog('info').info({ port: 8080 }, 'listening');`;
    const command = `'${process.execPath}' --import tsx --input-type=module -e ${JSON.stringify(code)}`;
    // A terminal of its own: util-linux's recorder of sessions.
    const { stdout, status } = spawnSync('script', ['-qec', command, '/dev/null'], { cwd: root, encoding: 'utf8' });
    assert.equal(status, 0, stdout);
    // Colours begin with an escape.
    assert.match(stdout, new RegExp(`\\d\\d:\\d\\d:\\d\\d\\.\\d{3}.*INFO.*${String.fromCharCode(27)}.*listening`));
    assert.match(stdout, /port.*8080/s);
    assert.ok(!stdout.includes('"msg"'));
  });
  it('tells of an error its type, code, stack and causes, and not what else it carries', () => {
    const { lines } = run(
      `log.error({ err: Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E1', request: { secret: 'no' } }) }, 'x');`,
    );
    const err = lines[0]?.err as Record<string, unknown>;
    assert.deepEqual(
      [err.type, err.message, err.code, (err.cause as Record<string, unknown>).message, err.request],
      ['Error', 'outer', 'E1', 'inner', undefined],
    );
  });
});

describe('fields named like secrets', () => {
  it('are blotted out at any depth, and the object that was handed in stays as it is', () => {
    const fields = { a: 1, api_key: 'sk-1', headers: { Authorization: 'Bearer x', 'x-api-key': 'y', accept: 'z' }, list: [{ password: 'p' }, 3] };
    const before = structuredClone(fields);
    assert.deepEqual(withoutSecrets(fields), {
      a: 1,
      api_key: '[redacted]',
      headers: { Authorization: '[redacted]', 'x-api-key': '[redacted]', accept: 'z' },
      list: [{ password: '[redacted]' }, 3],
    });
    assert.deepEqual(fields, before);
  });
  it('cost nothing where there are none: the same object goes on', () => {
    const fields = { request_id: 'r', tokens: 3, tool_calls: [{ tool: 't' }] };
    assert.equal(withoutSecrets(fields), fields);
  });
});

describe('the line of a request', () => {
  let app: RunningApp;
  before(async () => {
    app = await startApp({});
  });
  after(() => app.stop());
  const lineOf = (reply: Reply): LogLine | undefined =>
    app.lines.find(({ message, request_id }) => message === 'request' && request_id === reply.headers.get('x-request-id'));

  it('is written in normal operation for all that keys ask for, models too; not for looks at the gateway itself', async () => {
    for (const [path, level] of [
      ['/v1/models', 'info'],
      ['/v1/models/fast_model', 'info'],
      ['/admin/upstreams', 'debug'],
    ] as const)
      assert.equal(lineOf(await app.fetch(path))?.level, level, path);
  });

  it("notes the caller's x-request-id, cut and without control characters; the id is hermes' own", async () => {
    const given = `theirs\t1${'x'.repeat(300)}`;
    for (const reply of [
      await app.chat({ messages: user('x') }, { 'x-request-id': given }),
      await app.fetch('/v1/models', { headers: { 'x-request-id': given } }),
    ]) {
      const line = lineOf(reply);
      assert.match(String(line?.request_id), /^[0-9a-f-]{36}$/);
      assert.equal(line?.caller_request_id, `theirs1${'x'.repeat(249)}`);
    }
  });
});
