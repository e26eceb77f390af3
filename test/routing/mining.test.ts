import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { mine } from '../../src/routing/mining/mine.ts';
import { phrasesOf } from '../../src/routing/mining/phrases.ts';
import { parseRecorded, questionOf } from '../../src/routing/recorded-traffic.ts';
import { KEY, startApp, user } from '../app-kit.ts';
import { costIn } from '../time-kit.ts';
import { asking, routing, rule } from './fixture.ts';

const ORDER = ['我的订单里的包裹呢', '订单的包裹什么时候到', '查订单包裹', '订单在哪'];
const PARCEL = ['我的包裹到哪了', '包裹怎么还没签收', '包裹丢了怎么办', '包裹显示签收了'];
const POINTS = ['会员积分怎么兑换', '积分什么时候到账', '积分过期了', '积分能换什么'];
const CARDS = ['my gift card does not work', 'gift card balance please', 'I lost a gift card', 'Where is the gift card?'];
const RULES = [
  rule('order', { keywords: ['订单', '物流'] }),
  rule('refund', { regex: '退款|refund' }, { model: 'm_b' }),
  rule('everything', '.*', { model: 'default_model' }),
];
const run = (texts: readonly string[], { rules = RULES, least = 3 } = {}) => {
  const { room, config } = routing(rules);
  return mine(
    room,
    config,
    texts.map((text) => questionOf(text)),
    { least, most: 10, toSubject: ({ messages }) => asking({ messages }) },
  );
};

describe('mining', () => {
  it('proposes what the most of the default has in common, for the rule whose other questions have it, else for a new one', async () => {
    const report = await run([...ORDER, ...PARCEL, ...POINTS, ...CARDS, '你好', '退款']);
    assert.deepEqual([report.questions, report.caught], [18, 13]);
    const found = Object.fromEntries(report.proposals.map((one) => [one.keywords.map(({ word }) => word).join(), one]));
    assert.deepEqual(Object.keys(found).sort(), ['gift card', '包裹', '积分']);
    assert.deepEqual([found.包裹?.rule, found.包裹?.captured, found.包裹?.keywords[0]?.why], ['order', 4, '3 of 3 other questions with it hit order']);
    assert.deepEqual(found.包裹?.proposed, { ...RULES[0], match: { keywords: ['订单', '物流', '包裹'] } });
    assert.deepEqual(found.包裹?.examples, PARCEL);
    for (const word of ['gift card', '积分'] as const)
      assert.deepEqual([found[word]?.rule, found[word]?.captured, found[word]?.proposed.model], [undefined, 4, 'default_model']);
    assert.equal(new Set(report.proposals.map(({ proposed }) => proposed.id)).size, 3);
  });

  it('finds the rule by likeness where no other question has the phrase', async () => {
    const rules = [rule('shipping', { embedding: { min_score: 0.95, examples: ['什么时候能送到我家', '多久能送到我家里'] } }), rule('rest', '.*')];
    const report = await run(['快件什么时候能送到我家', '快件多久能送到', '快件什么时候能送到'], { rules });
    assert.equal(report.proposals[0]?.rule, 'shipping');
    assert.match(report.proposals[0]?.keywords[0]?.why ?? '', /are like those of shipping/);
    assert.deepEqual(report.proposals[0]?.proposed.match, { any: [rules[0]?.match, { keywords: [report.proposals[0]?.keywords[0]?.word] }] });
  });

  it('tells what a proposal would take from other rules', async () => {
    const rules = [rule('order', { keywords: ['订单'] }), rule('lost', { keywords: ['丢了'] }), rule('rest', '.*')];
    const report = await run([...ORDER, ...ORDER.map((text) => `${text}啊`), '包裹到哪', '包裹呢呢', '包裹多久', '包裹丢了'], { rules });
    assert.deepEqual([report.proposals[0]?.rule, report.proposals[0]?.captured], ['order', 3]);
    assert.deepEqual(report.proposals[0]?.taken, [{ from: 'lost', questions: 1, example: '包裹丢了' }]);
  });

  it('counts a question that is asked again, and leaves alone what is said too seldom', async () => {
    const report = await run(['蓝牙耳机坏了', '蓝牙耳机坏了', '蓝牙耳机坏了', '窗帘太长', '台灯不亮']);
    assert.deepEqual([report.questions, report.caught, report.proposals.length, report.proposals[0]?.captured], [5, 5, 1, 3]);
    assert.deepEqual((await run(['窗帘太长', '台灯不亮'])).proposals, []);
    assert.deepEqual(await run([]), { questions: 0, caught: 0, proposals: [] });
  });

  it('holds 5,000 questions', async () => {
    const words = ['耳机', '窗帘', '台灯', '书桌', '花盆', '地毯', '水壶', '相框'];
    const texts = Array.from(
      { length: 5_000 },
      (_, index) => `${words[index % 8]}${String.fromCodePoint(0x4e00 + index)}${String.fromCodePoint(0x5e00 + ((index * 7) % 999))}坏了 case${index}`,
    );
    const report = await run(texts, { least: 100 });
    const growth = await costIn(
      () => run(texts.slice(0, 500), { least: 10 }),
      () => run(texts, { least: 100 }),
      1,
    );
    // Ten where every question costs the same, a hundred where each is compared with all.
    assert.ok(growth < 30, `ten times the questions cost ${growth.toFixed(1)} times as much`);
    assert.ok(
      report.proposals.reduce((sum, { captured }) => sum + captured, 0) >= 4_900,
      JSON.stringify(report.proposals.map(({ keywords, captured }) => [keywords, captured])),
    );
  });
});

describe('phrases', () => {
  const cases: [string, string[]][] = [
    ['我的包裹', ['包裹']],
    ['电子发票', ['电子', '电子发', '电子发票', '子发', '子发票', '发票']],
    ['How do I redeem the GIFT card 12345?', ['redeem', 'gift', 'card', 'gift card']],
    ['ＶＩＰ 会员', ['vip', '会员']],
    ['', []],
  ];
  for (const [text, want] of cases) it(`of ${JSON.stringify(text)}`, () => assert.deepEqual([...phrasesOf(text)].sort(), [...want].sort()));
});

describe('recorded traffic', () => {
  const texts = (text: string) => parseRecorded(text).requests.map(({ messages }) => messages.at(-1)?.content);
  it('is read from lines, JSON lines, session exports, pages and trace exports', () => {
    assert.deepEqual(texts('one\n\n# no question\n two \r\n'), ['one', 'two']);
    assert.deepEqual(texts('{"message":"one"}\n"two"\n{"text":"three"}\n{broken'), ['one', 'two', 'three', '{broken']);
    assert.deepEqual(
      texts(
        '{"role":"system","content":"no"}\n{"role":"user","content":"one"}\n{"role":"assistant","content":"no"}\n{"role":"user","content":[{"type":"text","text":"two"}]}',
      ),
      ['one', 'two'],
    );
    const trace = {
      id: 't',
      route: 'order',
      model: 'm',
      started_at: '2026-11-30T12:00:00.000Z',
      spans: [],
      calls: [{ model: 'm', outcome: 'ok', tokens: { input: 3 } }],
      content: { request: [{ role: 'user', content: 'one' }] },
    };
    assert.deepEqual(texts(JSON.stringify({ data: [trace], next_cursor: null }, null, 2)), ['one']);
    const { requests, withoutContent } = parseRecorded(`${JSON.stringify(trace)}\n${JSON.stringify({ ...trace, content: undefined })}\n`);
    assert.deepEqual([requests[0]?.at, requests[0]?.calls[0]?.tokens.input, withoutContent], [Date.UTC(2026, 10, 30, 12), 3, 1]);
  });
});

describe('hermes-cli route mine', () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const cli = (args: string[], env: Record<string, string> = {}) =>
    spawnSync(process.execPath, ['--import', import.meta.resolve('tsx'), main, 'route', 'mine', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', DATABASE_URL: 'sqlite::memory:', ...env },
    });
  const folder = mkdtempSync(join(tmpdir(), 'hermes-mine-'));
  const config = {
    models: [{ id: 'a', provider: 'simulator' }],
    default_model: 'a',
    route_rules: [
      { id: 'order', match: { keywords: ['订单'] }, model: 'a' },
      { id: 'default', match: '.*', model: 'a' },
    ],
  };
  const file = join(folder, 'hermes.yaml');

  it('reads a file of questions, and says what it cannot use', () => {
    writeFileSync(file, JSON.stringify(config));
    writeFileSync(join(folder, 'questions.txt'), [...ORDER, ...PARCEL].join('\n'));
    const ran = cli([join(folder, 'questions.txt'), '--config', file]);
    assert.equal(ran.status, 0, ran.stderr);
    assert.match(ran.stdout, /^8 questions, 4 of them only by the default \(50 %\)\n\norder {2}would newly take 4\n {2}\+ 包裹/);
    writeFileSync(join(folder, 'bare.ndjson'), JSON.stringify({ id: 't', route: 'order', spans: [], calls: [] }));
    const without = cli([join(folder, 'bare.ndjson'), '--config', file]);
    assert.deepEqual([without.status, /its 1 traces have no content/.test(without.stderr)], [1, true]);
  });

  it('reads the stored sessions: of the cold store, or of a running gateway', async () => {
    const database = `sqlite:///${join(folder, 'hermes.db')}`;
    const running = await startApp(config, { env: { DATABASE_URL: database } });
    try {
      for (const [index, text] of [...ORDER, ...PARCEL].entries()) {
        const reply = await running.chat({ messages: user(text), session_id: `s${index >> 1}` });
        assert.equal(reply.status, 200, reply.text);
      }
      // Beside the gateway of this process, so not spawnSync.
      const args = ['--import', import.meta.resolve('tsx'), main, 'route', 'mine', '--url', running.base, '--config', file];
      const { stdout } = await promisify(execFile)(process.execPath, args, {
        env: { PATH: process.env.PATH ?? '', DATABASE_URL: 'sqlite::memory:', API_KEY: KEY },
      });
      assert.match(stdout, /^8 questions, 4 of them.*\n\norder {2}would newly take 4\n {2}\+ 包裹/);
    } finally {
      await running.stop();
    }
    assert.match(cli(['--config', file], { DATABASE_URL: database }).stdout, /^8 questions, 4 of them.*\n\norder {2}would newly take 4\n {2}\+ 包裹/);
  });
});
