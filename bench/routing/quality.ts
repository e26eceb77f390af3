// npx tsx bench/routing/quality.ts: precision and recall of keywords, of keywords and builtin, and of a real service when
// EMBEDDING_API_BASE, EMBEDDING_MODEL and EMBEDDING_API_KEY name one.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Config, RuleConfig } from '../../src/contracts/config.ts';
import type { Exchange } from '../../src/contracts/exchange.ts';
import type { Matcher } from '../../src/contracts/matcher.ts';
import type { RouteSubject } from '../../src/contracts/routing.ts';
import type { Log, Metrics } from '../../src/contracts/telemetry.ts';
import { loadOwnFolder } from '../../src/pipeline/load-folder.ts';
import { createRoutingRoom } from '../../src/routing/routing-room.ts';
import { fetchJson } from '../../src/upstream/fetch-json.ts';

interface Intent {
  id: string;
  keywords: string[];
  examples: string[];
}
interface Score {
  right: number;
  wrong: number;
  missed: number;
}
const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const uncounted: Metrics = {
  counter: () => ({ inc() {} }),
  gauge: () => ({ set() {} }),
  histogram: () => ({ observe() {} }),
  text: async () => '',
  contentType: '',
};
const read = <T>(name: string): T => parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as T;
const intents = read<Intent[]>('intents.yaml');
const matchers = await loadOwnFolder<Matcher>('src/routing/matchers');

/** Words first; what no word catches is asked by meaning, in the same order. */
function rulesOf(minScore: number | undefined): RuleConfig[] {
  const words = intents.map(({ id, keywords }) => ({ id, match: { keywords }, model: 'm' }));
  if (minScore === undefined) return words;
  const meaning = intents.map(({ id, examples }) => ({ id: `${id}~`, match: { embedding: { examples, min_score: minScore, min_margin: 0.001 } }, model: 'm' }));
  return [...words, ...meaning];
}

async function score(file: string, rules: RuleConfig[], embedding: Config['embedding'], key: string | undefined): Promise<Score> {
  const part: unknown = {
    route_rules: rules,
    tools: [],
    tool_sources: [],
    registry: { defaultModel: 'm', find: () => ({ id: 'm' }), models: new Map() },
    routing: { unknown_model: 'reject', timezone: 'UTC' },
    embedding,
    secrets: new Map(key === undefined ? [] : [['EMBEDDING_API_KEY', key]]),
  };
  const environment = { now: () => Date.now(), uuid: () => '', random: () => 0 };
  const engine = createRoutingRoom({ matchers, allows: () => true, environment, log: silent, metrics: uncounted, fetchJson }).compile(part as Config);
  const result: Score = { right: 0, wrong: 0, missed: 0 };
  for (const [intent, texts] of Object.entries(read<Record<string, string[]>>(file))) {
    for (const text of texts) {
      const subject: RouteSubject = { ask: {}, request: { messages: [{ role: 'user', content: String(text) }] }, caller: undefined, principal: undefined };
      const { rule } = await engine.decide(subject as Exchange);
      if (rule === 'default') result.missed++;
      else if (rule.replace('~', '') === intent) result.right++;
      else result.wrong++;
    }
  }
  return result;
}

const builtin = { provider: 'builtin', timeout_ms: 5_000 };
const modes: [string, RuleConfig[], Config['embedding']][] = [
  ['keywords', rulesOf(undefined), builtin],
  ['keywords, then builtin at 0.60', rulesOf(0.6), builtin],
  ['keywords, then builtin at 0.45', rulesOf(0.45), builtin],
  ['keywords, then builtin at 0.30', rulesOf(0.3), builtin],
];
const { EMBEDDING_API_BASE: api_base, EMBEDDING_MODEL: model_name, EMBEDDING_API_KEY: key } = process.env;
if (api_base && model_name) {
  const service = { provider: 'service', api_base, model_name, timeout_ms: 5_000, ...(key !== undefined && { api_key_env: 'EMBEDDING_API_KEY' }) };
  modes.push([`keywords, then ${model_name} at 0.50`, rulesOf(0.5), service]);
}
process.stdout.write('| | set | precision | recall | no rule |\n| --- | --- | --- | --- | --- |\n');
for (const [name, rules, embedding] of modes) {
  for (const set of ['dev', 'test']) {
    const { right, wrong, missed } = await score(`utterances-${set}.yaml`, rules, embedding, key);
    const total = right + wrong + missed;
    process.stdout.write(`| ${name} | ${set} | ${(right / (right + wrong)).toFixed(3)} | ${(right / total).toFixed(3)} | ${missed} of ${total} |\n`);
  }
}
