import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type App, createApp } from '../../src/app.ts';
import { startDemoTools } from '../../src/cli/demo-tools.ts';
import { KEY, keepLog } from '../app-kit.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const can = (program: string, ...args: string[]): Promise<boolean> =>
  run(program, args).then(
    () => true,
    () => false,
  );
const skipLoudly = (what: string): string => {
  process.stderr.write(`\n!!! SKIPPED: ${what}\n\n`);
  return what;
};

describe('examples, against the demo configuration', { timeout: 120_000 }, () => {
  let app: App;
  let tools: Awaited<ReturnType<typeof startDemoTools>>;
  before(async () => {
    tools = await startDemoTools(0);
    const env = { API_KEY: KEY, DATABASE_URL: 'sqlite::memory:', DEMO_TOOLS_PORT: String(tools.port) };
    app = await createApp({ load: { file: `${root}config/demo.yaml`, env, flags: { port: 0, host: '127.0.0.1' } }, createLog: () => keepLog([]) });
  });
  after(async () => {
    await app.stop();
    await tools.close();
  });
  const example = async (program: string, ...args: string[]): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      HERMES_URL: `http://127.0.0.1:${app.port}`,
      HERMES_KEY: KEY,
      PYTHONIOENCODING: 'utf-8',
      PYTHONDONTWRITEBYTECODE: '1',
    };
    return (await run(program, args, { cwd: root, env, timeout: 60_000 })).stdout;
  };
  const typescript = (name: string): Promise<string> => example(process.execPath, '--import', 'tsx', `examples/typescript/${name}`);

  it('Python, with the standard library', async (t) => {
    if (!(await can('python3', '--version'))) return t.skip(skipLoudly('python3 is missing'));
    const said = await example('python3', 'examples/python/plain.py');
    assert.match(said, /route: order_query/);
    assert.match(said, /tools: \['order\.query'\]/);
    assert.match(said, /remembered messages: [1-9]/);
  });
  it('Python, with the official client', async (t) => {
    if (!(await can('python3', '-c', 'import openai'))) return t.skip(skipLoudly('the openai package for Python is missing'));
    assert.ok((await example('python3', 'examples/python/openai_client.py')).trim().split('\n').length >= 2);
  });
  it('TypeScript, with the official client', async () => {
    const said = await typescript('chat.ts');
    assert.match(said, /route: order_query/);
    assert.ok(said.trim().split('\n').length >= 3);
  });
  it("TypeScript, with Anthropic's client", async () => {
    assert.match(await typescript('anthropic.ts'), /\nend_turn\n$/);
  });
});
