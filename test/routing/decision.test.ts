import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import { defineMatcher } from '../../src/contracts/matcher.ts';
import { type Asking, asking, matchers, routing, rule } from './fixture.ts';

const user = (content: string) => [{ role: 'user' as const, content }];
const bench = routing([
  rule('order', { keywords: ['order'] }, { model: 'm_b', tools: ['order.query'], priority: 'urgent' }),
  rule('alias', { keywords: ['alias'] }, { model: 'alias_a' }),
  rule('rest', { keywords: ['rest'] }, { model: 'default_model' }),
]);
const decide = (given: Asking) => bench.engine.decide(asking(given));
const refusal = (given: Asking): HermesError => {
  try {
    decide(given);
  } catch (error) {
    if (error instanceof HermesError) return error;
  }
  throw new Error('it was not refused');
};

describe('the decision', () => {
  it('is a plain value when no rule must wait', () => {
    assert.deepEqual(decide({ messages: user('my order') }), { rule: 'order', model: 'm_b', tools: ['order.query'], explicit: false, priority: 'urgent' });
  });
  it("keeps the caller's priority before the rule's", () => {
    assert.deepEqual(decide({ messages: user('my order'), ask: { priority: 'batch' } }), {
      rule: 'order',
      model: 'm_b',
      tools: ['order.query'],
      explicit: false,
      priority: 'batch',
    });
  });
  it('gives the registry id of an alias, and no tools for a rule without', () => {
    assert.deepEqual(decide({ messages: user('alias') }), { rule: 'alias', model: 'm_a', tools: [], explicit: false });
  });
  it('takes default_model as the name of the default', () => {
    assert.deepEqual(decide({ messages: user('rest') }), { rule: 'rest', model: 'm_z', tools: [], explicit: false });
  });
  it('is the default model, route default, with no bound on tools, when nothing hits', () => {
    assert.deepEqual(decide({ messages: user('hello') }), { rule: 'default', model: 'm_z', tools: undefined, explicit: false });
  });
  for (const [how, given] of [
    ['model by id', { request: { model: 'm_b' } }],
    ['model by alias', { request: { model: 'alias_a' } }],
    ["model by an upstream's name", { request: { model: 'm_b-name' } }],
    ['prefer_model', { ask: { preferModel: 'm_b' } }],
    ['prefer_model before model', { ask: { preferModel: 'm_b' }, request: { model: 'm_z' } }],
  ] satisfies [string, Asking][]) {
    it(`${how} skips the rules`, () => {
      const decision = decide({ messages: user('my order'), ...given });
      assert.ok(!(decision instanceof Promise));
      assert.deepEqual([decision.rule, decision.explicit, decision.tools], ['none', true, undefined]);
      assert.equal(decision.model, how.includes('alias') ? 'm_a' : 'm_b');
    });
  }
  for (const named of [null, 'auto', undefined]) {
    it(`model ${named} is routed`, () => {
      const decision = decide({ messages: user('my order'), request: named === undefined ? {} : { model: named } });
      assert.equal(decision instanceof Promise ? '' : decision.rule, 'order');
    });
  }
  it('refuses an unknown model with what there is', () => {
    const error = refusal({ messages: user('x'), request: { model: 'gpt-99' }, principal: { models: ['m_a', 'm_b'] } });
    assert.deepEqual([error.status, error.code, error.param], [404, 'model_not_found', 'model']);
    assert.match(error.message, /Available: auto, m_a, m_b\./);
    assert.doesNotMatch(error.message, /m_z/);
  });
  it('refuses an unknown prefer_model even where unknown models are routed', () => {
    const lenient = routing([rule('rest', '.*')], { routing: { unknown_model: 'route', timezone: 'UTC' } });
    assert.throws(() => lenient.engine.decide(asking({ messages: user('x'), ask: { preferModel: 'gpt-99' } })), { code: 'model_not_found' });
    const routed = lenient.engine.decide(asking({ messages: user('x'), request: { model: 'gpt-99' } }));
    assert.equal(routed instanceof Promise ? '' : routed.rule, 'rest');
  });
  it('refuses a named, a routed and a default model that the key may not use', () => {
    const only = { principal: { models: ['m_a'] } };
    for (const given of [
      { request: { model: 'm_b' } },
      { ask: { preferModel: 'm_b' } },
      { messages: user('my order') },
      { messages: user('hello') },
    ] satisfies Asking[]) {
      const error = refusal({ messages: user('x'), ...given, ...only });
      assert.deepEqual([error.status, error.code], [403, 'model_not_allowed']);
    }
  });
  it('counts each decision by its rule, and no dry run', async () => {
    const counted = routing([rule('order', { keywords: ['order'] })]);
    await counted.engine.decide(asking('order'));
    await counted.engine.decide(asking('order'));
    await counted.engine.decide(asking('hello'));
    await counted.engine.decide(asking({ messages: user('order'), request: { model: 'm_a' } }));
    await counted.engine.explain(asking('order'));
    await counted.room.compileRules(counted.config, [rule('candidate', '.*')]).decide(asking('order'));
    assert.deepEqual(Object.fromEntries(counted.seen.counts), {
      'hermes_route_hits_total order': 2,
      'hermes_route_hits_total default': 1,
      'hermes_route_hits_total none': 1,
    });
  });
  it('compiles a generation once', () => {
    assert.equal(bench.room.compile(bench.config), bench.engine);
  });
});

describe('rules that make no sense', () => {
  for (const [name, match, message] of [
    ['an unknown matcher, with the nearest', { keyword: ['x'] }, /route rule broken: there is no matcher "keyword"; did you mean keywords\?/],
    ['an empty match', {}, /route rule broken: match is empty/],
    ['a list', [], /match takes/],
    ['a regular expression that RE2 has not', '(?=x)', /no look-around/],
    ['an unknown flag', { regex: { pattern: 'x', flags: 'q' } }, /no flag "q"/],
    ['hours that are none', { hours: '25:00-26:00' }, /HH:MM/],
    ['an empty range', { hours: '10:00-10:00' }, /two different times/],
    ['a keyword of spaces', { keywords: [' '] }, /nothing in it/],
    ['an embedding key that is none', { embedding: { examples: ['x'], score: 1 } }, /no "score"/],
    ['a score that is none', { embedding: { examples: ['x'], min_score: 'high' } }, /min_score takes a number/],
  ] satisfies [string, unknown, RegExp][]) {
    it(`${name} is refused by the rule's name`, () => assert.throws(() => routing([rule('broken', match)]), message));
  }
  it('warns of a rule that can never match', () => {
    const never = routing([rule('nothing', { keywords: [] }), rule('nobody', { user_level: [], keywords: ['x'] })]);
    assert.deepEqual(
      never.seen.warnings.map((warning) => warning.split(':')[0]),
      ['route rule nothing can never match', 'route rule nobody can never match'],
    );
  });
});

describe('a tool continuation in a session', () => {
  const call = { role: 'assistant' as const, content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }] };
  const result = { role: 'tool' as const, tool_call_id: 'c', content: '{}' };
  const tools = [{ type: 'function', function: { name: 'look' } }];
  const turn = (id: string) => ({ id, project: 'shop', historyMessages: 0, historyTokens: 0 });
  const vip = routing([rule('vip', { user_level: 'vip' }, { model: 'm_b' }), rule('rest', '.*')]);
  const decideIn = (session: string, given: Asking) =>
    vip.engine.decide(Object.assign(asking({ ...given, request: { tools, ...given.request } }), { session: turn(session) }));

  it("keeps its turn's rule and model, whatever it leaves out", async () => {
    const begun = await decideIn('s1', { messages: user('hello'), caller: { userLevel: 'vip' } });
    assert.deepEqual(await decideIn('s1', { messages: [...user('hello'), call, result] }), begun);
    const named = await decideIn('s2', { messages: user('hello'), request: { tools, model: 'm_b' } });
    assert.deepEqual(await decideIn('s2', { messages: [...user('hello'), call, result] }), named);
    const explained = await vip.engine.explain(Object.assign(asking({ messages: [...user('hello'), call, result] }), { session: turn('s1') }));
    assert.deepEqual([explained.rule, explained.decision], ['vip', begun]);
  });
  it('goes elsewhere when it names a model, is of another turn or session, or the key may not use the model', async () => {
    await decideIn('s3', { messages: user('hello'), caller: { userLevel: 'vip' } });
    const ruleOf = async (session: string, given: Asking) => (await decideIn(session, given)).rule;
    assert.equal(await ruleOf('s4', { messages: [...user('hello'), call, result] }), 'rest');
    assert.throws(() => decideIn('s3', { messages: [...user('hello'), call, result], principal: { models: ['m_a'] } }), { code: 'model_not_allowed' });
    assert.equal(await ruleOf('s3', { messages: [...user('hello'), call, result], request: { tools, model: 'm_a' } }), 'none');
    assert.equal(await ruleOf('s3', { messages: user('hello') }), 'rest');
    await decideIn('s5', { messages: user('hello'), caller: { userLevel: 'vip' } });
    assert.equal(await ruleOf('s5', { messages: [...user('other'), call, result] }), 'rest');
  });
  it('does so on another instance and after a restart, by the shared hot store, else by the cold one; nothing that was said is there', async () => {
    const rules = [rule('vip', { user_level: 'vip' }, { model: 'm_b' }), rule('rest', '.*')];
    for (const shared of [true, false]) {
      const kept = new Map<string, string>();
      let [puts, away] = [0, false];
      const put = async (key: string, value: string): Promise<boolean> => {
        puts++;
        return Boolean(kept.set(key, value));
      };
      const store = {
        shared,
        get: async (key: string) => (away ? Promise.reject(new Error('away')) : kept.get(key)),
        getValue: async (key: string) => kept.get(key),
        set: put,
        setValue: put,
      };
      const instance = () => routing(rules, {}, shared ? { hot: store } : { hot: store, cold: store }).engine;
      const decide = (engine: ReturnType<typeof instance>, session: string, given: Asking) =>
        engine.decide(Object.assign(asking({ ...given, request: { tools, ...given.request } }), { session: turn(session) }));
      const [one, two] = [instance(), instance()];
      const begun = await decide(one, 's1', { messages: user('hello'), caller: { userLevel: 'vip' } });
      const writes = puts;
      for (let round = 0; round < 2; round++) assert.deepEqual(await decide(two, 's1', { messages: [...user('hello'), call, result] }), begun);
      assert.equal(puts, writes, 'a continuation writes nothing');
      // The next turn is decided there; what is known here is older.
      const later = await decide(two, 's1', { messages: user('more'), request: { tools, model: 'm_b' } });
      assert.deepEqual(await decide(one, 's1', { messages: [...user('more'), call, result] }), later);
      assert.equal((await decide(instance(), 's2', { messages: [...user('hello'), call, result] })).rule, 'rest');
      assert.doesNotMatch(JSON.stringify([...kept]), /hello|more|s1/);
      for (const key of kept.keys()) kept.set(key, '{"turn":');
      assert.equal((await decide(instance(), 's1', { messages: [...user('more'), call, result] })).rule, 'rest');
      away = true;
      if (shared) assert.equal((await decide(instance(), 's1', { messages: [...user('more'), call, result] })).rule, 'rest');
    }
  });
});

describe('on load', () => {
  it('tells of rules that others take away', () => {
    const { seen } = routing([
      rule('wide', { keywords: ['订单'] }),
      rule('narrow', { keywords: ['订单号'] }),
      rule('rest', '.*'),
      rule('late', { keywords: ['late'] }),
    ]);
    assert.equal(seen.warnings.length, 2);
    assert.match(seen.warnings[0] ?? '', /^route rule narrow: it is shadowed by wide/);
    assert.match(seen.warnings[1] ?? '', /^route rule late: it can never be reached: rest/);
  });
});

describe('explain', () => {
  it('says for every earlier rule why it missed', async () => {
    const told = routing([
      rule('kw', { keywords: ['订单', '物流'] }),
      rule('level', { user_level: 'vip', keywords: ['zebra'] }),
      rule('hours', { hours: '01:00-02:00' }),
      rule('regex', 'ticket-[0-9]+'),
      rule('hit', { keywords: ['Zebra'], not: { keywords: ['stripe'] } }),
      rule('after', '.*'),
    ]);
    const explanation = await told.engine.explain(asking({ messages: user('a zebra'), caller: { userLevel: 'basic' } }));
    assert.equal(explanation.rule, 'hit');
    assert.match(explanation.why, /keyword Zebra/);
    assert.deepEqual(
      explanation.earlier.map(({ rule: id }) => id),
      ['kw', 'level', 'hours', 'regex'],
    );
    const [kw, level, hours, regex] = explanation.earlier.map(({ why }) => why);
    assert.match(kw ?? '', /none of the keywords 订单, 物流/);
    assert.match(level ?? '', /user_level is basic, not vip/);
    assert.match(hours ?? '', /12:00 \(UTC\), outside hours 01:00-02:00/);
    assert.match(regex ?? '', /does not match \/ticket-\[0-9\]\+\/i/);
  });
  it('throws what the live path throws', async () => {
    await assert.rejects(bench.engine.explain(asking({ messages: user('x'), request: { model: 'gpt-99' } })), { code: 'model_not_found' });
  });

  const words = ['订单', '物流', '退款', 'order', 'refund', 'vip card', 'C++', '发票', 'track', '投诉'];
  const condition = fc.letrec((tie) => ({
    leaf: fc.oneof(
      fc.record({ keywords: fc.subarray(words, { minLength: 1 }) }),
      fc.record({ keywords: fc.subarray(words, { minLength: 1, maxLength: 2 }), require_all: fc.constant(true) }),
      fc.record({ regex: fc.constantFrom('order|refund', '退.', '^order', 'c\\+\\+') }),
      fc.record({ user_level: fc.constantFrom('vip', 'basic') }),
      fc.record({
        embedding: fc.record({ examples: fc.subarray(['where is my order', '我要退款', '开发票'], { minLength: 1 }), min_score: fc.constantFrom(0.3, 0.6) }),
      }),
    ),
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      tie('leaf'),
      fc.record({ any: fc.array(tie('node'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ all: fc.array(tie('node'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ not: tie('node') }),
    ),
  })).node;

  it('agrees with the live path, whatever the rules and the texts are', async () => {
    const texts = ['我的订单', 'where is my order?', '我要退款 refund', 'border', 'my VIP card', 'I like c++', '请开发票', 'hello', '', '物流投诉 track'];
    await fc.assert(
      fc.asyncProperty(fc.array(condition, { minLength: 1, maxLength: 8 }), fc.constantFrom(undefined, 'vip', 'basic'), async (matches, userLevel) => {
        const { engine } = routing(matches.map((match, index) => rule(`r${index}`, match)));
        for (const text of texts) {
          const subject = asking({ messages: user(text), caller: { userLevel } });
          const explanation = await engine.explain(subject);
          assert.deepEqual(explanation.decision, await engine.decide(subject));
          assert.equal(explanation.earlier.length, explanation.rule === 'default' ? matches.length : Number(explanation.rule.slice(1)));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('size', () => {
  it('tests only the rules whose keywords occur', () => {
    let tested = 0;
    const spy = defineMatcher({
      compile: (_, context) => ({
        needs: [context.keyword(context.ruleId)],
        hits: () => {
          tested++;
          return false;
        },
        test: () => ({ hit: false, why: '' }),
      }),
    });
    const spying = new Map([...matchers, ['spy', spy]]);
    const { engine } = routing([...Array.from({ length: 500 }, (_, index) => rule(`word${index}`, { spy: 1 })), rule('rest', '.*')], {}, { matchers: spying });
    engine.decide(asking('nothing of it'));
    assert.equal(tested, 0);
    engine.decide(asking('word7 and word400'));
    assert.equal(tested, 2);
  });
});
