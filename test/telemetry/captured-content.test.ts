import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseRecorded } from '../../src/routing/recorded-traffic.ts';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { until } from '../services.ts';
import { startCollector } from './otlp-collector.ts';

const QUESTION = 'write to ann@example.com, order ORD-20261';
const ANSWER = 'I wrote to bob@example.com, with sk-live4f3c1d7e5a2b48c6 and to ann@example.com';
const CONTENT_KEY = 'c0ntent-key-5f1e';

interface Captured {
  hashed?: true;
  request: { role: string; content?: unknown; hash?: string; characters?: number }[];
  answer: string | { hash: string; characters: number };
}

let upstream: FakeUpstream;
before(async () => {
  upstream = await createFakeUpstream({ strict: false });
  upstream.on('good', (reply) => reply.completion({ content: ANSWER }));
});
after(() => upstream.close());

const withApp = async (trace: object, run: (app: RunningApp) => Promise<void>, more: object = {}): Promise<void> => {
  const models = [{ id: 'good', provider: 'openai', model_name: 'good', api_base: upstream.url, api_key_env: 'UP_KEY' }];
  const app = await startApp({ models, trace, ...more }, { env: { UP_KEY: 'sk-upstream-1', CONTENT_KEY } });
  try {
    await run(app);
  } finally {
    await app.stop();
  }
};
const contentOf = async (app: RunningApp, reply: Reply): Promise<Captured> =>
  (await app.fetch(`/admin/traces/${reply.headers.get('x-request-id')}`)).json.content as Captured;

describe('content of a trace as hashes', () => {
  it('tells whether two requests said the same, and nothing of what they said', async () => {
    await withApp({ capture_content: 'hashes', hash_key_env: 'CONTENT_KEY' }, async (app) => {
      const replies = [
        await app.chat({ messages: user(QUESTION) }),
        await app.chat({ messages: user(QUESTION), stream: true }),
        await app.chat({ messages: user(`${QUESTION}!`) }),
      ];
      const [whole, streamed, other] = await Promise.all(replies.map((reply) => contentOf(app, reply)));
      const hash = (text: string): string => createHmac('sha256', CONTENT_KEY).update(text).digest('hex');
      assert.deepEqual(whole, {
        hashed: true,
        request: [{ role: 'user', characters: QUESTION.length, hash: hash(QUESTION) }],
        answer: { characters: ANSWER.length, hash: hash(ANSWER) },
      });
      assert.deepEqual(streamed, whole, 'of a stream it is the same');
      assert.notEqual(other?.request[0]?.hash, whole?.request[0]?.hash);
      const exported = (await app.fetch('/admin/traces?format=ndjson')).text;
      assert.ok(!exported.includes('example.com') && !exported.includes('ORD-'));
      assert.equal(parseRecorded(exported).withoutContent, 3, 'it cannot be decided again');
    });
  });

  it('covers what is no text, and the tool calls; without a key it is SHA-256, and that is warned of', async () => {
    await withApp({ capture_content: 'hashes' }, async (app) => {
      const parts = [{ type: 'text', text: 'hello' }];
      const tool_calls = [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }];
      const messages = [
        { role: 'user', content: parts },
        { role: 'assistant', content: null, tool_calls },
        { role: 'tool', tool_call_id: 'c1', content: '1' },
      ];
      const { request } = await contentOf(app, await app.chat({ messages }));
      const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
      assert.deepEqual(
        request.map((message) => message.hash),
        [hash(JSON.stringify(parts)), hash(`null${JSON.stringify(tool_calls)}`), hash('1')],
      );
      assert.ok(app.lines.some(({ level, message }) => level === 'warn' && message.includes('hash_key_env')));
    });
  });

  it('refuses to start without the key that it names', async () => {
    await assert.rejects(
      withApp({ capture_content: 'hashes', hash_key_env: 'NOT_SET' }, async () => undefined),
      /NOT_SET is not set/,
    );
    await assert.rejects(
      withApp({ capture_content: 'hash' }, async () => undefined),
      /must be false, true or hashes/,
    );
  });
});

describe('redaction of captured content', () => {
  const redact = [
    { kind: 'pii', detect: ['email'] },
    { kind: 'secrets' },
    { kind: 'block_list', words: ['Project Tiger'] },
    { kind: 'pattern', regex: 'ORD-\\d+' },
  ];

  it('takes out what the rules name, whole and streamed, the same value under the same name; callers and models get everything', async () => {
    await withApp({ capture_content: true, redact }, async (app) => {
      for (const stream of [false, true]) {
        const reply = await app.chat({ messages: user(`${QUESTION}, of Project Tiger`), stream });
        const { request, answer } = await contentOf(app, reply);
        assert.equal(request[0]?.content, 'write to ⟦email_1⟧, order ⟦pattern_1⟧, of ⟦word_1⟧');
        assert.equal(answer, 'I wrote to ⟦email_2⟧, with ⟦api_key_1⟧ and to ⟦email_1⟧');
        assert.ok(reply.text.includes('sk-live4f3c1d7e5a2b48c6'));
      }
      assert.ok(JSON.stringify(upstream.find('Project Tiger')?.body).includes('ann@example.com'));
    });
  });

  it('looks into arguments of tool calls and parts of messages, and keeps JSON what it is', async () => {
    await withApp({ capture_content: true, redact }, async (app) => {
      const messages = [
        { role: 'user', content: [{ type: 'text', text: QUESTION }] },
        { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"to":"ann@example.com"}' } }] },
        { role: 'tool', tool_call_id: 'c1', content: 'sent to ann@example.com' },
      ];
      const { request } = await contentOf(app, await app.chat({ messages }));
      const text = JSON.stringify(request);
      assert.ok(!text.includes('example.com') && !text.includes('ORD-2'), text);
      assert.match(text, /\{\\"to\\":\\"⟦email_1⟧\\"\}/);
    });
  });

  it('takes secrets out without being asked to, and a value that the cut goes through', async () => {
    await withApp({ capture_content: true }, async (app) => {
      const filler = 'word '.repeat(3274);
      const { request, answer } = await contentOf(app, await app.chat({ messages: user(`${filler}sk-live4f3c1d7e5a2b48c6aaaa and more ${filler}`) }));
      assert.ok(!JSON.stringify([request, answer]).includes('sk-live'));
      assert.match(String(request[0]?.content), /…$/);
      assert.ok(String(request[0]?.content).length <= 16_385);
    });
  });

  it('holds for the stored trace, its export and the examples of shadow reports, and nothing of it goes to a collector', async () => {
    const collector = await startCollector();
    const folder = mkdtempSync(join(tmpdir(), 'hermes-captured-'));
    const rules_file = join(folder, 'next.yaml');
    writeFileSync(rules_file, JSON.stringify([{ id: 'candidate', match: '.*', model: 'default_model' }]));
    try {
      await withApp(
        { capture_content: true, redact, otlp_endpoint: collector.url },
        async (app) => {
          const reply = await app.chat({ messages: user(QUESTION) });
          await until(() => collector.spans.length > 0, 'nothing was exported');
          const id = reply.headers.get('x-request-id');
          await until(async () => (await app.fetch(`/admin/traces/${id}`)).json.content !== undefined, 'no content');
          const report = (await app.fetch('/admin/shadow/report')).text;
          assert.match(report, /order ⟦pattern_1⟧/);
          const outputs = [report, (await app.fetch('/admin/traces?format=ndjson')).text, ...collector.bodies.map((body) => body.toString('latin1'))];
          for (const output of outputs) assert.ok(!output.includes('example.com') && !output.includes('ORD-2'));
          assert.ok(!collector.bodies.some((body) => body.includes('write to')));
        },
        { shadow: { sample: 1, rules_file, usd_per_day: 1 } },
      );
    } finally {
      collector.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('is checked with the rest of the configuration', async () => {
    for (const [rule, told] of [
      [{ kind: 'pattern', regex: '(' }, /linear time \(RE2\)/],
      [{ kind: 'pattern', regex: '(abc){200}(def){200}' }, /too large/],
      [{ kind: 'pattern' }, /regex.*is missing/s],
      [{ kind: 'pii', words: ['x'] }, /belongs to other kinds; pii takes detect/],
      [{ kind: 'secrets', detect: ['email'] }, /secrets knows api_key/],
    ] as const)
      await assert.rejects(
        withApp({ capture_content: true, redact: [rule] }, async () => undefined),
        told,
      );
  });

  it('is in the documentation', () => {
    const page = readFileSync(new URL('../../docs/traces.md', import.meta.url), 'utf8');
    for (const word of ['capture_content: hashes', 'hash_key_env', 'redact:', 'sample']) assert.ok(page.includes(word), word);
  });
});
