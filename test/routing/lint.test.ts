import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type Finding, type LintCode, lintRules } from '../../src/routing/lint.ts';
import { readLintSource } from '../../src/routing/lint-source.ts';
import { allows, matchers } from './fixture.ts';

const names = ['apple', 'banana', 'cherry', 'damson', 'elder', 'fig', 'grape', 'hazel', 'iris', 'juniper'];
/** Sixty rules without a fault: fifty of words, nine of other kinds, and a catch-all. */
const clean: Record<string, unknown>[] = [
  ...Array.from({ length: 50 }, (_, index) => ({
    id: `r${index}`,
    match: { keywords: [`${names[index % 10]}${index} pie`, `问题${index}号`] },
    model: index % 2 ? 'm_a' : 'm_b',
    tools: ['order.query'],
  })),
  { id: 'vip words', match: { user_level: 'vip', keywords: ['complaint'] }, model: 'm_b' },
  { id: 'words', match: { keywords: ['complaint'] }, model: 'm_a' },
  { id: 'both words', match: { keywords: ['发票', '报销'], require_all: true }, model: 'm_a' },
  { id: 'one word', match: { keywords: ['发票', '抬头'] }, model: 'm_a' },
  { id: 'night', match: { hours: '22:00-06:00', service_type: 'kb' }, model: 'm_a' },
  { id: 'pattern', match: { regex: 'sku-[0-9]{4}' }, model: 'm_a' },
  { id: 'own case', match: { regex: { pattern: 'SKU', flags: '' } }, model: 'm_a' },
  { id: 'meaning', match: { embedding: { examples: ['where is my parcel'] } }, model: 'm_a' },
  { id: 'not', match: { keywords: ['pears'], not: { keywords: ['apples'] } }, model: 'm_a' },
  { id: 'default', match: '.*', model: 'default_model' },
];
const file = {
  models: [
    { id: 'm_a', model_name: 'a-1' },
    { id: 'm_b', aliases: ['bee'] },
  ],
  tools: [{ id: 'order.query' }, { id: 'secret.tool' }],
  auth: { keys: [{ id: 'k', tools: ['order.*'] }] },
};
const tests = JSON.stringify(clean.map(({ id }) => ({ rule: id, questions: ['x'] })));
const lint = (rules: readonly unknown[], testText: string | undefined = tests): Finding[] =>
  lintRules(readLintSource(JSON.stringify({ ...file, route_rules: rules }), testText), matchers, allows);

type Change = (rules: Record<string, unknown>[]) => void;
const insert =
  (at: number, ...added: Record<string, unknown>[]): Change =>
  (rules) => {
    rules.splice(at, 0, ...added);
  };
const edit =
  (id: string, change: Record<string, unknown>): Change =>
  (rules) => {
    Object.assign(rules.find((rule) => rule.id === id) ?? {}, change);
  };
const tested = (rule: Record<string, unknown>) => ({ model: 'm_a', ...rule, id: rule.id ?? 'words' });

const faults: [string, Change, LintCode, string, RegExp?][] = [
  ['a rule after the catch-all', (rules) => rules.push(...rules.splice(55, 1)), 'unreachable', 'pattern', /default \(line 1\)|default/],
  ['a rule after a disguised catch-all', insert(3, tested({ id: 'r3x', match: { any: [{ keywords: ['x9'] }, '.*'] } })), 'unreachable', 'r40'],
  ['an unknown model', edit('r7', { model: 'm_c' }), 'unknown-model', 'r7', /m_c/],
  ['a rule without a model', edit('r7', { model: undefined }), 'unknown-model', 'r7'],
  ['an unknown matcher', edit('r8', { match: { keyword: ['x'] } }), 'unknown-matcher', 'r8', /did you mean keywords/],
  [
    'an unknown matcher deep inside',
    edit('r8', { match: { any: [{ keywords: ['qq'] }, { not: { user_lvl: 'vip' } }] } }),
    'unknown-matcher',
    'r8',
    /user_level/,
  ],
  ['a pattern that RE2 has not', edit('r9', { match: '(?<=x)y' }), 'broken', 'r9'],
  ['hours that are none', edit('night', { match: { hours: 'night' } }), 'broken', 'night'],
  ['a rule that can never hit', edit('r10', { match: { keywords: [] } }), 'never', 'r10'],
  ['an id used twice', edit('r11', { id: 'r12' }), 'duplicate-id', 'r12'],
  [
    'a rule shadowed by its wider keywords',
    insert(20, tested({ id: 'r5 narrow', match: { keywords: ['问题5号', '和'], require_all: true } })),
    'shadowed',
    'r5 narrow',
    /r5/,
  ],
  ['a rule shadowed by a part of its keyword', insert(20, tested({ id: 'x', match: { keywords: ['我的问题5号'] } })), 'shadowed', 'x', /r5/],
  [
    'a rule shadowed because it asks for more',
    insert(58, tested({ id: 'x', match: { keywords: ['complaint'], user_level: 'gold' } })),
    'shadowed',
    'x',
    /words/,
  ],
  ['a rule shadowed by a regular expression', insert(58, tested({ id: 'x', match: { keywords: ['sku-1234'] } })), 'shadowed', 'x', /pattern/],
  ['hours within hours', insert(58, tested({ id: 'x', match: { hours: '23:00-05:00', service_type: 'kb' } })), 'shadowed', 'x', /night/],
  ['the same rule twice', insert(58, tested({ id: 'x', match: { keywords: ['抬头', '发票'] } })), 'duplicate', 'x', /one word/],
  ['a keyword that an earlier rule takes away', insert(58, tested({ id: 'x', match: { keywords: ['电子发票', '盖章'] } })), 'overlap', 'x', /电子发票/],
  ['no catch-all', (rules) => void rules.pop(), 'no-catch-all', ''],
  ['a keyword of one character', edit('r13', { match: { keywords: ['查', '问题13号'] } }), 'short-keyword', 'r13', /查/],
  ['an unknown tool', edit('r14', { tools: ['order.qeury'] }), 'unknown-tool', 'r14', /did you mean order.query/],
  ['a tool that no key may use', edit('r15', { tools: ['secret.tool'] }), 'forbidden-tool', 'r15'],
  ['a rule without questions', edit('r16', { id: 'r16 renamed' }), 'untested', 'r16 renamed'],
];

describe('lint', () => {
  it('finds nothing in sixty clean rules', () => assert.deepEqual(lint(structuredClone(clean)), []));

  for (const [what, change, code, rule, message] of faults) {
    it(`finds ${what}`, () => {
      const rules = structuredClone(clean);
      change(rules);
      const found = lint(rules).filter((finding) => finding.code === code && finding.rule === rule);
      assert.equal(found.length, 1, JSON.stringify(lint(rules).slice(0, 5)));
      if (message) assert.match(found[0]?.message ?? '', message);
      const errors: LintCode[] = ['unreachable', 'unknown-model', 'unknown-matcher', 'broken', 'never', 'duplicate-id'];
      assert.equal(found[0]?.level, errors.includes(code) ? 'error' : 'warning');
    });
  }

  it('is not fooled by rules that only look alike', () => {
    const pairs: [unknown, unknown][] = [
      [{ keywords: ['order'] }, { keywords: ['border'] }],
      [{ keywords: ['a', 'b'], require_all: true }, { keywords: ['ab1'] }],
      [{ user_level: 'vip' }, { user_level: ['vip', 'gold'] }],
      [{ keywords: ['x1'], user_level: 'vip' }, { keywords: ['x1'] }],
      [{ regex: '^sku$' }, { keywords: ['sku'] }],
      [{ regex: { pattern: 'SKU', flags: '' } }, { keywords: ['sku'] }],
      [{ not: { keywords: ['x1'] } }, { keywords: ['x2'] }],
      [{ hours: '09:00-18:00' }, { hours: '08:00-18:00' }],
      [{ embedding: { examples: ['a'] } }, { embedding: { examples: ['b'] } }],
    ];
    for (const [first, second] of pairs) {
      const found = lint([
        { id: 'first', match: first, model: 'm_a' },
        { id: 'second', match: second, model: 'm_a' },
        { id: 'rest', match: '.*', model: 'm_a' },
      ]);
      assert.deepEqual(
        found.filter(({ code }) => ['shadowed', 'duplicate', 'overlap', 'unreachable'].includes(code)),
        [],
        JSON.stringify([first, second]),
      );
    }
  });

  it('reads the rules where the rest of the file is wrong, and says the line', () => {
    const text =
      'models: 7\ntools: [x, {}]\nauth: no\nroute_rules:\n  - id: rest\n    match: .*\n    model: m\n  - id: late\n    match: { keywords: [订单] }\n    model: m\n  - 12\n';
    const found = lintRules(readLintSource(text, undefined), matchers, allows);
    const late = found.find(({ rule }) => rule === 'late');
    assert.deepEqual([late?.code, late?.line], ['unreachable', 8]);
    assert.match(late?.message ?? '', /rest \(line 5\)/);
    assert.ok(found.some(({ rule, code }) => rule === 'route_rules[2]' && code === 'unknown-model'));
  });

  it('takes a bare list of rules, as rules_file holds', () => {
    assert.deepEqual(
      readLintSource('- { id: a, match: .*, model: m }', undefined).rules.map(({ id, line }) => [id, line]),
      [['a', 1]],
    );
  });

  it('finds no error in the configuration that comes with hermes', () => {
    const config = readFileSync(new URL('../../config/hermes.yaml', import.meta.url), 'utf8');
    const questions = readFileSync(new URL('../../config/route_tests.yaml', import.meta.url), 'utf8');
    const found = lintRules(readLintSource(config, questions), matchers, allows);
    assert.deepEqual(
      found.filter(({ level }) => level === 'error'),
      [],
    );
    assert.deepEqual(
      found.filter(({ code }) => code === 'untested'),
      [],
    );
  });
});
