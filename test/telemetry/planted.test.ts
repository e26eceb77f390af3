import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ToolCall } from '../../src/wire/chat.ts';
import { user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { freePort, temporaryFolder, until } from '../services.ts';
import { type Collector, startCollector } from './otlp-collector.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What callers and models say: in traces, logs and metrics never by default, in sessions by their nature. */
const CONTENT = {
  question: 'PLANTED-question-7c1',
  answer: 'PLANTED-answer-7c2',
  description: 'PLANTED-description-7c5',
  parameter: 'PLANTED-parameter-7c7',
  result: 'PLANTED-result-7c8',
};
/** What must be nowhere. */
const SECRETS = {
  API_KEY: 'sk-PLANTED-own-key-7d0',
  UP_KEY: 'sk-PLANTED-upstream-7d1',
  SIGNING: 'PLANTED-signing-7d2',
  TOOL_SECRET: 'PLANTED-tool-secret-7d3',
  METRICS_TOKEN: 'PLANTED-metrics-token-7d4',
  ALERT_URL: 'http://127.0.0.1:9/PLANTED-webhook-7d5',
  EMBED_KEY: 'sk-PLANTED-embedding-7d6',
};
const GIVEN = { wrongKey: 'sk-PLANTED-wrong-7e1', cookie: 'PLANTED-cookie-7e2', signature: 'PLANTED-signature-7e3' };

/** Every GET of an operator's that the code has; a new one is looked at without being asked for. */
const adminPaths = readdirSync(join(root, 'src/admin')).flatMap((file) =>
  [...readFileSync(join(root, 'src/admin', file), 'utf8').matchAll(/method: 'GET',\s+pattern: '([^']+)'/g)].map(([, pattern = '']) => pattern),
);
/** A session's own messages are what these are for. */
const SHOW_CONTENT = ['/admin/sessions/{id}', '/admin/sessions/{id}/export'];

describe('planted secrets and contents', () => {
  let upstream: FakeUpstream;
  let collector: Collector;
  let child: ChildProcess;
  let base: string;
  let said = '';
  const tools = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ state: CONTENT.result })));
  });

  before(async () => {
    upstream = await createFakeUpstream({ strict: false });
    upstream.on('bad', (reply) => reply.error(500, `no, not with ${SECRETS.UP_KEY} at ${upstream.url}: ${CONTENT.question}`));
    upstream.on('good', (reply, call) => {
      if (!call.raw.includes('"tool_call_id"') && call.raw.includes('with a tool')) reply.completion({ tool_calls: [toolCall('t1')] });
      else reply.completion({ content: CONTENT.answer });
    });
    collector = await startCollector();
    tools.listen(0, '127.0.0.1');
    await once(tools, 'listening');
    const port = await freePort();
    base = `http://127.0.0.1:${port}`;
    const folder = temporaryFolder();
    const file = join(folder, 'hermes.yaml');
    writeFileSync(join(folder, 'next.yaml'), JSON.stringify([{ id: 'candidate', match: '.*', model: 'bad' }]));
    writeFileSync(file, JSON.stringify(configuration(port, `http://127.0.0.1:${(tools.address() as AddressInfo).port}/tool`, folder)));
    const env = { PATH: process.env.PATH, LOG_LEVEL: 'trace', DATABASE_URL: `sqlite:///${join(folder, 'hermes.db')}`, ...SECRETS };
    child = spawn(process.execPath, ['--import', 'tsx', join(root, 'src/main.ts'), 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'pipe'], env });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => (said += part.toString()));
    await until(async () => child.exitCode !== null || (await fetch(`${base}/readyz`)).ok, 'the gateway was not ready', 30_000);
    assert.equal(child.exitCode, null, said);
  });
  after(async () => {
    if (child.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    tools.close();
    tools.closeAllConnections();
    collector.close();
    await upstream.close();
  });

  const toolCall = (id: string): ToolCall => ({
    id,
    type: 'function',
    function: { name: 'order_query', arguments: JSON.stringify({ order_id: CONTENT.parameter }) },
  });
  const configuration = (port: number, endpoint: string, folder: string): object => {
    const model = (id: string, api_base = upstream.url): object => ({
      id,
      provider: 'openai',
      model_name: id,
      api_base,
      api_key_env: 'UP_KEY',
      pricing: { input_per_million: 1e6, output_per_million: 1e6 },
    });
    return {
      server: { host: '127.0.0.1', port },
      auth: { signatures: [{ service: 'billing', secret_env: 'SIGNING' }] },
      models: [model('good'), model('bad'), model('gone', 'http://127.0.0.1:9/v1')],
      default_model: 'good',
      route_rules: [
        { id: 'meaning', match: { embedding: { examples: ['where is my parcel'], min_score: 0.9 } }, model: 'good' },
        { id: 'default', match: '.*', model: 'default_model', tools: ['order.query'] },
      ],
      embedding: { provider: 'openai', model_name: 'e', api_base: 'http://127.0.0.1:9/v1', api_key_env: 'EMBED_KEY' },
      tools: [
        { id: 'order.query', endpoint, side_effects: false, secret_env: 'TOOL_SECRET', parameters: { type: 'object' }, description: 'looks an order up' },
      ],
      cost: { budgets: [{ id: 'all', service: 'default', usd_per_day: 0.001, switch_to: 'good', notify: { url_env: 'ALERT_URL' } }] },
      shadow: { sample: 1, rules_file: './next.yaml', run_models: true, usd_per_day: 10 },
      metrics: { token_env: 'METRICS_TOKEN' },
      trace: { otlp_endpoint: collector.url },
      pipeline: { plugins_dir: folder },
    };
  };
  const ask = async (path: string, headers: Record<string, string> = {}, body?: unknown): Promise<{ status: number; text: string }> => {
    const response = await fetch(base + path, {
      headers: { authorization: `Bearer ${SECRETS.API_KEY}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
  const assertWithout = (text: string, marks: Record<string, string>, where: string): void => {
    for (const [what, mark] of Object.entries(marks)) {
      const at = text.indexOf(mark);
      assert.ok(at < 0, `${what} stands in ${where}: …${text.slice(Math.max(0, at - 100), at + 60)}…`);
    }
  };
  const addresses = (): Record<string, string> => ({
    upstream: `127.0.0.1:${upstream.port}`,
    gone: '127.0.0.1:9/',
    tool: `127.0.0.1:${(tools.address() as AddressInfo).port}`,
  });

  it('stand in no error, log line, metric, trace, span, list or page', async () => {
    const messages = user(CONTENT.question);
    const chat = (body: object, headers: Record<string, string> = {}) =>
      ask('/v1/chat/completions', { cookie: `session=${GIVEN.cookie}`, ...headers }, { messages, ...body });
    const own = [{ type: 'function', function: { name: 'f', description: CONTENT.description, parameters: {} } }];
    const signature = {
      'x-hermes-service': 'billing',
      'x-hermes-timestamp': '1',
      'x-hermes-nonce': 'n',
      'x-hermes-signature': `v1=${GIVEN.signature}`,
      authorization: '',
    };
    const answers = [
      await chat({ tools: own }),
      await chat({ stream: true, session_id: 's' }),
      await chat({ messages: user(`${CONTENT.question} with a tool`), tools: ['order.query'] }),
      await chat({ model: 'bad' }),
      await chat({ model: 'bad', stream: true }),
      await chat({ model: 'gone' }),
      await chat({}, { authorization: `Bearer ${GIVEN.wrongKey}` }),
      await chat({}, signature),
      await ask('/v1/chat/completions', {}, `{"messages": ["${CONTENT.question}"`),
      await ask('/v1/chat/completions', {}, { messages: [{ role: CONTENT.question }] }),
      await ask('/v1/messages', {}, { model: 'bad', max_tokens: 5, messages }),
      await ask('/v1/responses', {}, { model: 'gone', input: CONTENT.question }),
    ];
    assert.ok(
      answers.slice(0, 3).every(({ status, text }) => status === 200 && text.includes(CONTENT.answer)),
      JSON.stringify(answers.slice(0, 3)),
    );
    assert.ok(answers.slice(3).every(({ status }) => status >= 400));
    for (const { text } of answers.slice(3)) assertWithout(text, { ...CONTENT, ...SECRETS, ...GIVEN, ...addresses() }, 'an error');
    await until(() => collector.spans.some(({ name }) => name.startsWith('execute_tool')), 'nothing was exported');
    await until(async () => (await ask('/admin/budgets')).text.includes('crossed'), 'the budget was not crossed');

    assert.ok(adminPaths.length >= 13, `only ${adminPaths}`);
    const trace = (JSON.parse((await ask('/admin/traces')).text) as { data: { id: string }[] }).data[0]?.id;
    for (const pattern of adminPaths) {
      const path = pattern.replace('{id}', pattern.includes('traces') ? String(trace) : 's');
      const { status, text } = await ask(path);
      assert.equal(status, 200, path);
      assertWithout(text, { ...SECRETS, ...GIVEN, ...(SHOW_CONTENT.includes(pattern) ? {} : CONTENT) }, path);
      if (SHOW_CONTENT.includes(pattern)) assert.ok(text.includes(CONTENT.question), `${path} is what a session's messages are for`);
      else assertWithout(text, addresses(), path);
    }
    for (const path of ['/admin/traces?format=ndjson', '/console', '/console/main.js', '/v1/models', '/readyz', '/healthz'])
      assertWithout((await ask(path)).text, { ...SECRETS, ...GIVEN, ...CONTENT, ...addresses() }, path);
    for (const accept of ['text/plain', 'application/openmetrics-text']) {
      const { status, text } = await ask('/metrics', { accept, authorization: `Bearer ${SECRETS.METRICS_TOKEN}` });
      assert.equal(status, 200);
      assertWithout(text, { ...SECRETS, ...GIVEN, ...CONTENT, ...addresses() }, '/metrics');
    }
    for (const body of collector.bodies) assertWithout(body.toString('latin1'), { ...SECRETS, ...GIVEN, ...CONTENT, ...addresses() }, 'a span');
  });

  it('stand in nothing that the process wrote at its most talkative, from its start to its end', async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
    assert.ok(said.split('\n').filter((line) => line.includes('"msg":"request"')).length >= 12, 'it was not that talkative');
    assertWithout(said, { ...SECRETS, ...GIVEN, ...CONTENT, ...addresses() }, 'the log');
  });
});
