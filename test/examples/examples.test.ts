import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
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

  const python = existsSync(`${root}examples/python/.venv/bin/python`) ? 'examples/python/.venv/bin/python' : 'python3';
  /** What an example needs beside the language. */
  const without = async (module: string): Promise<string | undefined> =>
    (await can(python, '-c', `import ${module}`)) ? undefined : skipLoudly(`${module} for Python is missing: pip install -r examples/python/requirements.txt`);

  it('Python, with the standard library', async (t) => {
    if (!(await can('python3', '--version'))) return t.skip(skipLoudly('python3 is missing'));
    const said = await example('python3', 'examples/python/plain.py');
    assert.match(said, /route: order_query/);
    assert.match(said, /tools: \['order\.query'\]/);
    assert.match(said, /remembered messages: [1-9]/);
  });
  it('Python, with the official client', async (t) => {
    const missing = await without('openai');
    if (missing) return t.skip(missing);
    assert.ok((await example(python, 'examples/python/openai_client.py')).trim().split('\n').length >= 2);
  });
  it('Python, with LangChain: whole, streamed, and with a tool of its own', async (t) => {
    const missing = await without('langchain_openai');
    if (missing) return t.skip(missing);
    const said = await example(python, 'examples/python/langchain_chat.py');
    assert.match(said, /answered: .*20240515/);
    assert.match(said, /streamed: .*turn 2/);
    assert.match(said, /tool: parcel_weight 2\.5/);
  });
  it('Python, with the OpenAI Agents SDK', async (t) => {
    const missing = await without('agents');
    if (missing) return t.skip(missing);
    const said = await example(python, 'examples/python/openai_agent.py');
    assert.match(said, /answered: .*20240515/);
    assert.match(said, /streamed: .+ \(\d{2,} events\)/);
  });
  it('TypeScript, with the official client', async () => {
    const said = await typescript('chat.ts');
    assert.match(said, /route: order_query/);
    assert.ok(said.trim().split('\n').length >= 3);
  });
  it("TypeScript, with Anthropic's client", async () => {
    assert.match(await typescript('anthropic.ts'), /\nend_turn\n$/);
  });
  it('TypeScript, with the Vercel AI SDK', async (t) => {
    if (!existsSync(`${root}examples/typescript/node_modules/ai`))
      return t.skip(skipLoudly('the Vercel AI SDK is missing: npm install --prefix examples/typescript'));
    const said = await typescript('vercel-ai.ts');
    assert.match(said, /route: order_query/);
    assert.match(said, /answered: .*20240515.* tokens/);
    assert.match(said, /turn 2/);
  });
});
