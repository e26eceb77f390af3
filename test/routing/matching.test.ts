import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RE2JS, RE2Set } from 're2js';
import { costIn } from '../time-kit.ts';
import { type Asking, asking, routeOf, routing, rule } from './fixture.ts';

const bench = routing([
  rule('cjk', { keywords: ['订单', '物流'] }),
  rule('both', { keywords: ['退款', '投诉'], require_all: true }),
  rule('order', { keywords: ['order'] }),
  rule('cpp', { keywords: ['C++'] }),
  rule('cafe', { keywords: ['café'] }),
  rule('python', { keywords: ['python'] }),
  rule('cat', { keywords: ['cat'] }),
  rule('invoice', { keywords: ['发票'] }),
  rule('wide', { keywords: ['ＶＩＰ卡'] }),
  rule('phrase', { keywords: ['credit card'] }),
  rule('number', { keywords: [12306] }),
  rule('kana', { keywords: ['エラー'] }),
  rule('hangul', { keywords: ['주문'] }),
  rule('russian', { keywords: ['заказ'] }),
  rule('plain', '^ping [0-9]+$'),
  rule('regex', { regex: 'ticket-[0-9]{4}' }),
  rule('own flags', { regex: { pattern: 'SKU-[A-Z]{3}', flags: '' } }),
  rule('dotall', { regex: { pattern: 'begin.*finish', flags: 's' } }),
  rule('one line', { regex: 'start.*stop' }),
  rule('brackets', { regex: '全额（含税）' }),
  rule('level', { user_level: 'vip', keywords: ['zebra'] }),
  rule('levels', { user_level: ['gold', 'vip'], keywords: ['okapi'] }),
  rule('service', { service_type: 'kb', keywords: ['giraffe'] }),
  rule('priority', { priority: 'batch', keywords: ['lion'] }),
  rule('project', { project: 'library', keywords: ['tiger'] }),
  rule('open', { hours: '11:00-12:01', keywords: ['monkey'] }),
  rule('closed', { hours: '12:01-11:00', keywords: ['panda'] }),
  rule('until now', { hours: '11:00-12:00', keywords: ['koala'] }),
  rule('over midnight', { hours: '23:00-12:01', keywords: ['owl'] }),
  rule('any', { any: [{ keywords: ['apple'] }, { regex: 'pea(r|ch)' }] }),
  rule('all', { all: [{ keywords: ['salt'] }, { regex: 'pepper[0-9]' }] }),
  rule('not', { keywords: ['banana'], not: { keywords: ['split'] } }),
  rule('nested', { all: [{ any: [{ keywords: ['bus'] }, { keywords: ['tram'] }] }, { not: { user_level: 'vip' } }, { keywords: ['stop'] }] }),
  rule('first', { keywords: ['twins'] }),
  rule('second', { keywords: ['twins'] }),
  rule('vip without text', { user_level: 'imagevip' }),
  rule('rest', '.*'),
]);

/** The live path and the dry run: each fixture proves that they are one. */
async function both(given: Asking, want: string): Promise<void> {
  const decision = await bench.engine.decide(asking(given));
  assert.equal(decision.rule, want);
  const explanation = await bench.engine.explain(asking(given));
  assert.deepEqual(explanation.decision, decision);
  assert.equal(explanation.rule, want);
}

describe('which rule hits', () => {
  const texts: [string, string, string][] = [
    ['a CJK keyword hits inside a sentence', '帮我查一下订单20240515的状态', 'cjk'],
    ['any of the keywords is enough', '物流到哪了', 'cjk'],
    ['CJK beside Latin letters hits', 'my订单no', 'cjk'],
    ['发票 hits in 我需要开发票', '我需要开发票', 'invoice'],
    ['require_all needs all', '我要退款', 'rest'],
    ['require_all in any order', '我要投诉，给我退款', 'both'],
    ['a word hits in a sentence', 'where is my order?', 'order'],
    ['a word hits alone', 'order', 'order'],
    ['a word hits in quotes', '("order")', 'order'],
    ['a word hits between CJK', '我的order呢', 'order'],
    ['order does not hit border', 'the border is closed', 'rest'],
    ['order does not hit reordering or preorders', 'reordering preorders', 'rest'],
    ['order does not hit with digits or underscores glued on', 'order66 my_order', 'rest'],
    ['a later whole word hits after an embedded one', 'reorder this order', 'order'],
    ['cat does not hit concatenate', 'concatenate these', 'rest'],
    ['python hits in 用python写', '用python写', 'python'],
    ['C++ hits', 'Explain C++ move semantics', 'cpp'],
    ['C++ hits at the end', 'I like c++', 'cpp'],
    ['C++ does not hit inside abc++', 'abc++', 'rest'],
    ['café hits composed', 'the café at noon', 'cafe'],
    ['café hits decomposed', 'the cafe\u0301 at noon', 'cafe'],
    ['café does not hit cafe', 'the cafe at noon', 'rest'],
    ['full-width letters hit', 'ｍｙ ＯＲＤＥＲ ｐｌｅａｓｅ', 'order'],
    ['case does not matter', 'MY ORDER', 'order'],
    ['a full-width keyword hits plain text', '我的vip卡丢了', 'wide'],
    ['a phrase hits', 'my Credit Card is lost', 'phrase'],
    ['a phrase hits over a line break', 'my credit\n  card is lost', 'phrase'],
    ['a number is a keyword', '打12306电话', 'number'],
    ['half-width kana hit', 'ｴﾗｰが出る', 'kana'],
    ['a Korean keyword hits with its ending', '주문을 확인해 주세요', 'hangul'],
    ['a Russian keyword is a word', 'где мой ЗАКАЗ?', 'russian'],
    ['a Russian keyword does not hit inside a word', 'заказчик', 'rest'],
    ['an emoji is an edge', '📦order📦', 'order'],
    ['a plain string is a regular expression', 'ping 42', 'plain'],
    ['its anchors count', 'please ping 42 now', 'rest'],
    ['a regular expression hits inside, case ignored', 'about Ticket-2024, please', 'regex'],
    ['a regular expression misses', 'about ticket-24', 'rest'],
    ['own flags: case counts', 'the SKU-ABC', 'own flags'],
    ['own flags: another case misses', 'the sku-abc', 'rest'],
    ['own flags: the dot takes line breaks', 'begin\nthen finish', 'dotall'],
    ['without them it does not', 'start\nthen stop', 'rest'],
    ['full-width brackets in a pattern are letters', '退全额(含税)的', 'brackets'],
    ['hours that hold', 'monkey', 'open'],
    ['hours that do not', 'panda', 'rest'],
    ['hours are half-open', 'koala', 'rest'],
    ['hours may pass midnight', 'owl', 'over midnight'],
    ['any: the first arm', 'an apple', 'any'],
    ['any: the second arm', 'a peach', 'any'],
    ['all: both', 'salt and pepper7', 'all'],
    ['all: one is not enough', 'salt and pepper', 'rest'],
    ['not: holds', 'banana bread', 'not'],
    ['not: refuses', 'banana split', 'rest'],
    ['nested conditions', 'the tram stop', 'nested'],
    ['the first hit wins', 'twins', 'first'],
    ['a blank message has text', ' ', 'rest'],
  ];
  for (const [name, text, want] of texts) it(name, () => both({ messages: [{ role: 'user', content: text }] }, want));

  const fields: [string, Asking, string, string][] = [
    ['user_level hits', { caller: { userLevel: 'vip' } }, 'zebra', 'level'],
    ['user_level alone is not enough', { caller: { userLevel: 'vip' } }, 'horse', 'rest'],
    ['another user_level misses', { caller: { userLevel: 'basic' } }, 'zebra', 'rest'],
    ['no user_level misses', {}, 'zebra', 'rest'],
    ['one of several levels hits', { caller: { userLevel: 'gold' } }, 'okapi', 'levels'],
    ['service_type is the service that counts', { caller: { service: 'kb' } }, 'giraffe', 'service'],
    ['another service misses', {}, 'giraffe', 'rest'],
    ['priority hits', { caller: { priority: 'batch' } }, 'lion', 'priority'],
    ['no priority is normal', {}, 'lion', 'rest'],
    ['project hits', { caller: { project: 'library' } }, 'tiger', 'project'],
    ['not on a field', { caller: { userLevel: 'vip' } }, 'bus stop', 'rest'],
  ];
  for (const [name, more, text, want] of fields) {
    it(name, () => both({ ...more, messages: [{ role: 'user', content: text }] }, want));
  }
});

describe('which text decides (field report 32)', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const call = { role: 'assistant' as const, content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }] };
  const conversations: [string, Asking, string][] = [
    [
      'the newest user message, not older ones',
      {
        messages: [
          { role: 'user', content: '订单' },
          { role: 'assistant', content: 'order' },
          { role: 'user', content: 'hello' },
        ],
      },
      'rest',
    ],
    [
      'not the system prompt',
      {
        messages: [
          { role: 'system', content: '订单' },
          { role: 'user', content: 'hello' },
        ],
      },
      'rest',
    ],
    [
      'several text parts are one text',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: '我要退款' },
              { type: 'text', text: '我要投诉' },
            ],
          },
        ],
      },
      'both',
    ],
    ['the text beside an image', { messages: [{ role: 'user', content: [image, { type: 'text', text: 'my order' }] }] }, 'order'],
    ['an image alone has no text: text matchers miss, even .*', { messages: [{ role: 'user', content: [image] }] }, 'default'],
    [
      'an image alone does not fall back on an older message',
      {
        messages: [
          { role: 'user', content: '订单' },
          { role: 'user', content: [image] },
        ],
      },
      'default',
    ],
    ['an image alone still hits a rule on fields', { messages: [{ role: 'user', content: [image] }], caller: { userLevel: 'imagevip' } }, 'vip without text'],
    [
      'a tool result that comes last keeps its turn',
      { messages: [{ role: 'user', content: 'my order' }, call, { role: 'tool', tool_call_id: 'c1', content: '退款 投诉 订单' }] },
      'order',
    ],
    ['no user message at all', { messages: [{ role: 'system', content: '订单' }] }, 'default'],
  ];
  for (const [name, conversation, want] of conversations) it(name, () => both(conversation, want));
});

describe('a hostile text', () => {
  it('is decided in linear time by the regular expressions', async () => {
    const evil = routing([rule('evil', '^(a+)+$'), rule('nested', '(x+x+)+y'), rule('rest', '.*')]);
    // Backtracking would take for ever at 2,000 characters: it would not come back from any of these.
    for (const length of [2_000, 50_000, 400_000]) assert.equal(await routeOf(evil, `${'a'.repeat(length)}!`), 'rest');
  });

  /** What backtracks for ever elsewhere, and what has more states than can be built. */
  const HOSTILE: [string, string][] = [
    ['^(a+)+$', 'a'],
    ['(a|aa)+[!?]$', 'a'],
    ['(x+x+)+[yz]', 'x'],
    ['(.*?){20}[订单]$', '订'],
    ['(a?){30}a{30}[bc]', 'a'],
    ['(a|b)*a(a|b){14}c', 'ab'],
    ['(a|b)*a(a|b){200}(c|d)', 'ab'],
    ['.*[a-m].{900}[qz]', 'abx'],
    ['(a{0,50}){0,20}\\b[bc]', 'a'],
    ['\\b.*[a-m].{50}\\b[qz]\\B', 'ab '],
  ];
  /** A fixed random walk over the letters, so that every state comes up. */
  const walk = (letters: string, length: number): string => {
    let state = 7;
    return Array.from({ length }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return letters[(state >>> 16) % letters.length];
    }).join('');
  };
  const sizeOf = (pattern: string): number => RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE).programSize();
  /** What a pattern may take for one text, its program's size times characters, and what following its states side by side costs then. */
  const MOST_STEPS = 1_200_000;
  const reference = (() => {
    const pattern = '(a|b)*a(a|b){200}(c|d)';
    const set = new RE2Set(RE2Set.UNANCHORED, RE2JS.CASE_INSENSITIVE, 1);
    set.add(pattern);
    set.compile();
    const text = walk('ab', Math.floor(MOST_STEPS / sizeOf(pattern)));
    return () => assert.deepEqual(set.match(text), []);
  })();
  for (const [pattern, letters] of HOSTILE) {
    it(`${pattern} on 50,000 characters holds nobody up`, async () => {
      const { engine } = routing([rule('evil', { regex: pattern }), rule('rest', { regex: '.*' })]);
      const text = walk(letters, 50_000);
      const told = JSON.stringify(await engine.explain(asking(text)));
      const reads = Number(/in the (\d+) characters that are looked at/.exec(told)?.[1] ?? text.length);
      assert.ok(reads === 500 || reads * sizeOf(pattern) <= MOST_STEPS, `${reads} characters by ${sizeOf(pattern)}`);
      // The costliest takes 3 references, also under coverage; with re2js's own memory for the automaton 5 to 9, without a limit of steps 16 and 41.
      const cost = await costIn(reference, () => engine.decide(asking(text)));
      assert.ok(cost < 5, `${cost.toFixed(1)} times what ${MOST_STEPS} steps cost`);
    });
  }

  it('is looked at up to a length that the pattern allows, and the reason says so', async () => {
    const { engine } = routing([rule('heavy', { regex: '(a|b)*a(a|b){200}c' }), rule('plain', { regex: 'needle' }), rule('rest', '.*')]);
    const explained = await engine.explain(asking(`${'b'.repeat(49_000)} needle`));
    assert.equal(explained.rule, 'plain');
    assert.match(explained.earlier[0]?.why ?? '', /does not match .* in the \d{4} characters that are looked at$/);
    const at = async (before: number, after: number) => (await engine.decide(asking(`${'b'.repeat(before)} needle ${'b'.repeat(after)}`))).rule;
    assert.deepEqual(await Promise.all([at(30_000, 90_000), at(90_000, 5_000), at(90_000, 90_000)]), ['plain', 'plain', 'rest']);
  });
  it('is not taken for whole where only a part of it is looked at', async () => {
    const { engine } = routing([rule('letters', '^[a-z]+$'), rule('end', 'stop$'), rule('rest', '.*')]);
    const decided = async (text: string) => (await engine.decide(asking(text))).rule;
    assert.deepEqual(await Promise.all([decided('a'.repeat(50_000)), decided('a'.repeat(60_000)), decided(`${'a1'.repeat(40_000)}stop`)]), [
      'letters',
      'rest',
      'end',
    ]);
  });
});
