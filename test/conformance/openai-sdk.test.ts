import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { KEY, startApp } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { createFakeAnthropic } from '../providers/fake-anthropic.ts';
import { MODELS } from './chat-scripts.ts';
import { type Result, runAll, toCompatibilityPage } from './compatibility.ts';
import { WEATHER_TOOL } from './openai-cases.ts';
import { openHouse } from './openai-run.ts';

let results: Result[];
let violations: string[];
before(async () => {
  ({ results, violations } = await runAll());
});

describe('the official SDKs cannot tell hermes from the vendor', () => {
  test('same events, same objects, same exceptions', () => {
    assert.ok(results.length > 60, String(results.length));
    for (const { name, group, same, direct, hermes } of results) if (!same) assert.deepEqual(hermes, direct, `${group}: ${name}`);
    assert.deepEqual(
      violations.filter((violation) => violation !== 'Incorrect API key provided.'),
      [],
    );
  });

  test('docs/compatibility.md tells of this run (npm run compatibility writes it)', () => {
    assert.equal(readFileSync(new URL('../../docs/compatibility.md', import.meta.url), 'utf8'), toCompatibilityPage(results));
  });
});

test('a client that aborts is gone for the upstream at once', async () => {
  const house = await openHouse();
  try {
    const controller = new AbortController();
    const stream = await house.hermes.chat.completions.create(
      { model: 'slow', messages: [{ role: 'user', content: 'x' }], stream: true },
      { signal: controller.signal },
    );
    for await (const _chunk of stream) controller.abort();
    await house.fake.until(() => house.fake.callsOf('slow').at(-1)?.aborted === true);
  } finally {
    await house.close();
  }
});

describe('the same calls through an Anthropic upstream', () => {
  test('give a program what it reads: text, calls, results, reasons, usage, one role, whole and streamed', async () => {
    const fake = await createFakeAnthropic(({ body, raw }) => {
      if (body.messages.at(-1)?.content.some(({ type }) => type === 'tool_result')) return [{ type: 'text', text: 'It is 北京: 晴 and 上海: 晴.' }];
      return raw.includes('weather')
        ? ['北京', '上海'].map((city, index) => ({ type: 'tool_use', id: `toolu_${index}`, name: 'weather', input: { city } }))
        : [{ type: 'text', text: 'Hello, 世界 🎉' }];
    });
    const model = (id: string, more: object) => ({ id, ...more });
    const openai = await createFakeUpstream();
    openai.on('text', (reply) => reply.completion({ content: 'Hello, 世界 🎉' }));
    openai.on('weather', (reply, { body }) =>
      body.messages.at(-1)?.role === 'tool'
        ? reply.completion({ content: 'It is 北京: 晴 and 上海: 晴.' })
        : reply.completion({
            content: null,
            tool_calls: ['北京', '上海'].map((city, index) => ({
              id: `call_${index}`,
              type: 'function',
              function: { name: 'weather', arguments: JSON.stringify({ city }) },
            })),
          }),
    );
    const at = (provider: string) => ({
      models: ['text', 'weather'].map((id) =>
        model(id, {
          provider,
          model_name: provider === 'anthropic' ? 'claude-sonnet-4-5' : id,
          api_base: provider === 'anthropic' ? fake.url : openai.url,
          api_key_env: 'UP',
        }),
      ),
    });
    const apps = [await startApp(at('openai'), { env: { UP: 'sk-up' } }), await startApp(at('anthropic'), { env: { UP: 'sk-ant' } })];
    try {
      const [one, two] = await Promise.all(apps.map((app) => told(new OpenAI({ apiKey: KEY, baseURL: `${app.base}/v1`, maxRetries: 0 }))));
      assert.deepEqual(two, one);
      assert.deepEqual(fake.violations, []);
    } finally {
      await Promise.all(apps.map((app) => app.stop()));
      await Promise.all([fake.close(), openai.close()]);
    }
  });
});

/** What does not depend on who answers. */
async function told(client: OpenAI): Promise<unknown> {
  const ask = { model: 'text', messages: [{ role: 'user' as const, content: 'hi' }] };
  const whole = await client.chat.completions.create(ask);
  const roles: unknown[] = [];
  let text = '';
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
    const choice = chunk.choices[0];
    if (choice?.delta.role) roles.push(choice.delta.role);
    text += choice?.delta.content ?? '';
  }
  const request = { model: 'weather', messages: ask.messages, tools: [WEATHER_TOOL] };
  const calls: unknown[] = [];
  const called = ({ name, arguments: args }: { name: string; arguments: string }) => void calls.push([name, JSON.parse(args)]);
  const runner = client.chat.completions.runTools(request).on('functionToolCall', called);
  const answered = await runner.finalContent();
  const streaming = client.chat.completions.runTools({ ...request, stream: true }).on('functionToolCall', called);
  const runs = [answered, await streaming.finalContent(), runner.messages.map(({ role }) => role), streaming.messages.map(({ role }) => role)];
  const { message, finish_reason } = whole.choices[0] ?? {};
  return { message: [message?.role, message?.content], finish_reason, counted: (whole.usage?.total_tokens ?? 0) > 0, roles, text, runs, calls };
}

describe('an upload of 50 MB', () => {
  const MB = 1_048_576;
  let hermes: ChildProcess;
  let base: string;
  let folder: string;
  let received = 0;
  const vendor = http.createServer((request, response) => {
    request.on('data', (part: Buffer) => (received += part.length));
    request.on('end', () =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id: 'file-1', object: 'file', bytes: received })),
    );
  });

  before(async () => {
    vendor.listen(0, '127.0.0.1');
    await once(vendor, 'listening');
    const address = vendor.address();
    folder = mkdtempSync(join(tmpdir(), 'hermes-upload-'));
    const file = join(folder, 'hermes.yaml');
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1`;
    writeFileSync(
      file,
      JSON.stringify({
        models: [{ id: MODELS[0], provider: 'simulator' }],
        providers: { vendor: { type: 'openai', api_base: url, api_key_env: 'VENDOR_KEY' } },
        passthrough: { upstream: 'vendor' },
      }),
    );
    const env = { ...process.env, API_KEY: KEY, VENDOR_KEY: 'sk-vendor', DATABASE_URL: 'sqlite::memory:' };
    hermes = spawn(
      process.execPath,
      ['--max-semi-space-size=1', '--import', 'tsx', 'src/main.ts', 'serve', '--config', file, '--port', '0', '--host', '127.0.0.1'],
      {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    base = await listening(hermes);
  });
  after(async () => {
    hermes.kill('SIGTERM');
    vendor.close();
    vendor.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  test('goes through as it comes: the heap of hermes stays flat', async () => {
    const before = await heldBytes(base);
    let most = 0;
    let over = false;
    const watching = (async () => {
      for (; !over; await sleep(40)) most = Math.max(most, await heldBytes(base));
    })();
    const boundary = 'b-0123456789';
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="big.bin"\r\ncontent-type: application/octet-stream\r\n\r\n`;
    const block = Buffer.alloc(MB / 4, 7);
    async function* form(): AsyncGenerator<Buffer> {
      yield Buffer.from(head);
      for (let at = 0; at < 200; at++) {
        // Slow enough that what is held would be seen.
        if (at % 20 === 0) await sleep(20);
        yield block;
      }
      yield Buffer.from(`\r\n--${boundary}--\r\n`);
    }
    const sent = http.request(`${base}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': `multipart/form-data; boundary=${boundary}` },
    });
    Readable.from(form()).pipe(sent);
    const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
    response.resume();
    await once(response, 'end');
    over = true;
    await watching;
    assert.equal(response.statusCode, 200);
    assert.ok(received > 50 * MB, String(received));
    // Garbage that nobody has collected yet is counted, too.
    assert.ok(most - before < 35 * MB, `the heap grew by ${Math.round((most - before) / MB)} MB`);
  });
});

/** Heap and what hangs on it, as hermes itself tells it. */
async function heldBytes(base: string): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return value('nodejs_heap_size_used_bytes') + value('nodejs_external_memory_bytes');
}

async function listening(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout);
  for await (const line of createInterface({ input: child.stdout })) {
    const entry = JSON.parse(line) as { msg?: string; address?: string };
    if (entry.msg !== 'listening') continue;
    child.stdout.resume();
    return String(entry.address).replace(/\/$/, '');
  }
  throw new Error('hermes did not start');
}
