// npx tsx bench/routing/decide.ts: what a decision costs, for 10 rules and for 2,000, by keywords and by meaning.
import type { Config, EmbeddingConfig, RuleConfig } from '../../src/contracts/config.ts';
import type { Exchange } from '../../src/contracts/exchange.ts';
import type { Matcher } from '../../src/contracts/matcher.ts';
import type { RouteEngine, RouteSubject } from '../../src/contracts/routing.ts';
import type { Log, Metrics } from '../../src/contracts/telemetry.ts';
import { loadOwnFolder } from '../../src/pipeline/load-folder.ts';
import type { FetchJson } from '../../src/routing/embedding/create-embedder.ts';
import { createRoutingRoom } from '../../src/routing/routing-room.ts';

const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const uncounted: Metrics = {
  counter: () => ({ inc() {} }),
  gauge: () => ({ set() {} }),
  histogram: () => ({ observe() {} }),
  text: async () => '',
  contentType: '',
};
const matchers = await loadOwnFolder<Matcher>('src/routing/matchers');

function engineOf(rules: readonly RuleConfig[], embedding: EmbeddingConfig = { provider: 'builtin', timeout_ms: 10_000 }, fetchJson?: FetchJson): RouteEngine {
  const part: unknown = {
    route_rules: rules,
    tools: [],
    tool_sources: [],
    registry: { defaultModel: 'm', find: () => ({ id: 'm' }), models: new Map() },
    routing: { unknown_model: 'reject', timezone: 'UTC' },
    embedding,
    secrets: new Map(),
  };
  const room = createRoutingRoom({
    matchers,
    allows: () => true,
    environment: { now: () => Date.now(), uuid: () => '', random: () => 0 },
    log: silent,
    metrics: uncounted,
    ...(fetchJson && { fetchJson }),
  });
  return room.compile(part as Config);
}
const byWords = (count: number): RuleConfig[] => [
  ...Array.from({ length: count }, (_, index) => ({
    id: `rule_${index}`,
    model: 'm',
    match: { keywords: Array.from({ length: 5 }, (_, key) => (key % 2 ? `词${index}组${key}` : `term${index}x${key}`)) },
  })),
  { id: 'default', match: '.*', model: 'm' },
];
const byMeaning = (examples: number, perRule = 100): RuleConfig[] => [
  ...Array.from({ length: examples / perRule }, (_, index) => ({
    id: `meaning_${index}`,
    model: 'm',
    match: { embedding: { min_score: 0.99, examples: Array.from({ length: perRule }, (_, example) => `第${index}类的第${example}个问题怎么办`) } },
  })),
  { id: 'default', match: '.*', model: 'm' },
];

const asked = (text: string): Exchange => {
  const subject: RouteSubject = { ask: {}, request: { messages: [{ role: 'user', content: text }] }, caller: undefined, principal: undefined };
  return subject as Exchange;
};
function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
}
async function microseconds(engine: RouteEngine, text: string, rounds: number): Promise<number> {
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const subject = asked(text);
    const started = performance.now();
    const decision = engine.decide(subject);
    if (decision instanceof Promise) await decision;
    took.push((performance.now() - started) * 1000);
  }
  return median(took);
}

const question = '你好，我上周买的那双鞋一直没有收到，能不能帮我看一下现在到哪里了？Thank you very much!';
const long = '这里有一段很长的文字，没有任何一个关键的词语在里面。a plain sentence without a term in it. '.repeat(250);
const few = engineOf(byWords(10));
const many = engineOf(byWords(2_000));
const lines = ['| µs, median | 10 rules × 5 keywords | 2,000 rules × 5 keywords |', '| --- | --- | --- |'];
for (const [what, text, rounds] of [
  ['a question that hits nothing', question, 5_000],
  ['a question that hits the last rule', `${question} term1999x4 term9x4`, 5_000],
  ['20 kB that hit nothing', long, 300],
] as const) {
  await microseconds(few, text, rounds);
  await microseconds(many, text, rounds);
  lines.push(`| ${what} | ${(await microseconds(few, text, rounds)).toFixed(1)} | ${(await microseconds(many, text, rounds)).toFixed(1)} |`);
}
const meaning = engineOf(byMeaning(10_000));
await meaning.decide(asked(question));
lines.push('', `by meaning (builtin), 10,000 examples in 100 rules, vectors cached: ${((await microseconds(meaning, question, 60)) / 1000).toFixed(2)} ms`);

/** Vectors as services give them: 1,536 numbers, none of them zero; those of a text are always the same. */
function serviceVector(text: string): number[] {
  let state = 1;
  for (const character of text) state = (Math.imul(state, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return Array.from({ length: 1536 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}
const fetchJson: FetchJson = async (_url, { body }) => {
  const { input } = JSON.parse(body) as { input: string[] };
  return { data: input.map((text, index) => ({ index, embedding: serviceVector(text) })) };
};
const service = { provider: 'service', model_name: 'any', api_base: 'http://localhost', timeout_ms: 60_000 };
for (const [perRule, rules] of [
  [100, byMeaning(10_000)],
  [1, byMeaning(10_000, 1)],
] as const) {
  const engine = engineOf(rules, service, fetchJson);
  await engine.decide(asked(question));
  const took = (await microseconds(engine, question, 60)) / 1000;
  lines.push(`by meaning (1,536 dimensions), 10,000 examples, ${perRule} a rule, vectors cached: ${took.toFixed(2)} ms`);
}
process.stdout.write(`${lines.join('\n')}\n`);
