import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { KEY, startApp, user } from '../app-kit.ts';
import { temporaryFolder } from '../services.ts';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');

describe('a command that looks or asks', () => {
  const folder = temporaryFolder();
  const [file, started, database] = [join(folder, 'hermes.yaml'), join(folder, 'started'), join(folder, 'hermes.db')];
  const env = { PATH: process.env.PATH, API_KEY: KEY, DATABASE_URL: `sqlite:///${database}`, REDIS_URL: 'redis://127.0.0.1:1' };
  const hermes = async (...words: string[]): Promise<{ out: string; err: string }> => {
    const { stdout, stderr } = await run(process.execPath, ['--import', TSX, MAIN, ...words, '--config', file], { cwd: folder, env });
    return { out: stdout, err: stderr };
  };
  before(async () => {
    const app = await startApp({}, { env: { DATABASE_URL: env.DATABASE_URL } });
    await app.chat({ session_id: 'kept', messages: user('hello') });
    await app.stop();
    const mark = `require('fs').writeFileSync(${JSON.stringify(started)}, '')`;
    const config = {
      models: [{ id: 'm', provider: 'simulator' }],
      default_model: 'm',
      tools: [{ id: 'files', mcp: { command: [process.execPath, '-e', mark] } }],
      route_rules: [{ id: 'all', match: '.*', model: 'm' }],
    };
    writeFileSync(file, JSON.stringify(config));
    writeFileSync(join(folder, 'tests.yaml'), JSON.stringify([{ rule: 'all', questions: ['hello'] }]));
  });

  it('that is none, or whose file is not there, is told by its own name', async () => {
    const refusal = (...words: string[]): Promise<string> =>
      hermes(...words).then(
        ({ out }) => `good: ${out}`,
        (failed: { stderr: string }) => failed.stderr,
      );
    assert.equal(await refusal('roue', 'lint'), 'there is no command "roue" (did you mean `route`?)\n');
    writeFileSync(join(folder, 'questions.txt'), 'hello\n');
    assert.equal(await refusal('route', 'replay', '--traces', join(folder, 'questions.txt'), '--rules', 'nofile'), 'nofile cannot be read\n');
  });

  it('starts no tool program, and asks no store that it does not need', async () => {
    const list = await hermes('session', 'list');
    assert.match(list.out, /kept/);
    assert.match((await hermes('session', 'show', 'kept')).out, /user: hello/);
    assert.match((await hermes('models', 'test')).out, /1 upstreams answer/);
    assert.match((await hermes('route', 'test', join(folder, 'tests.yaml'))).out, /all/);
    assert.equal(list.err, '', 'Redis, which is away, was asked');
    assert.equal(existsSync(started), false, 'the MCP server was started');
  });
  it('deletes a session although Redis is away', async () => {
    assert.match((await hermes('session', 'delete', 'kept')).out, /deleted default kept/);
    assert.match((await hermes('session', 'list')).out, /no sessions/);
  });
});
