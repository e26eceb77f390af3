import type { Config, RuleConfig } from '../../contracts/config.ts';
import type { RouteEngine, RouteSubject, RoutingRoom } from '../../contracts/routing.ts';
import { isRecord } from '../../wire/json.ts';
import { newestUserText } from '../../wire/newest-user-text.ts';
import { createBuiltinEmbedder } from '../embedding/builtin-embedder.ts';
import type { RecordedRequest } from '../recorded-traffic.ts';
import { normaliseText } from '../text.ts';
import { type MinedGroup, proposeKeywords, type Question, type RuleWords } from './propose.ts';

export interface MineOptions {
  least: number;
  most: number;
  toSubject(request: RecordedRequest): RouteSubject;
}
export interface MiningReport {
  questions: number;
  /** Only the default took them. */
  caught: number;
  proposals: Proposal[];
}
export interface Proposal extends MinedGroup {
  /** The rule as it would be. */
  proposed: RuleConfig;
  /** Questions of the default that the rule would take, and some of them. */
  captured: number;
  examples: string[];
  /** What it would take from other rules. */
  taken: { from: string; questions: number; example: string }[];
}

const EXAMPLES = 5;

interface Asked extends Question {
  request: RecordedRequest;
}

/** Decides recorded questions by the rules in use, proposes keywords for what only the default took, and tries each proposal out. */
export async function mine(room: RoutingRoom, config: Config, requests: readonly RecordedRequest[], options: MineOptions): Promise<MiningReport> {
  const engine = room.compileRules(config, config.route_rules);
  const asked = await decideAll(engine, requests, options);
  const rules = config.route_rules.filter(({ id }) => !engine.isDefault(id));
  const likeness = await likenessOf([...asked.map(({ text }) => text), ...rules.flatMap((rule) => wordsOf(rule).texts)]);
  const groups = proposeKeywords(asked, rules.map(wordsOf), { ...options, likeness });
  const proposals: Proposal[] = [];
  for (const group of groups) proposals.push(await tryOut({ room, config, engine, asked, options, used: proposals.map(({ proposed }) => proposed.id) }, group));
  const sum = (list: readonly Question[]) => list.reduce((total, { count }) => total + count, 0);
  return {
    questions: sum(asked),
    caught: sum(asked.filter(({ rule }) => rule === undefined)),
    proposals: proposals.filter(({ captured }) => captured >= options.least).sort((a, b) => b.captured - a.captured),
  };
}

/** The same question asked again is counted, not kept. */
async function decideAll(engine: RouteEngine, requests: readonly RecordedRequest[], { toSubject }: MineOptions): Promise<Asked[]> {
  const byText = new Map<string, Asked>();
  for (const request of requests) {
    const text = newestUserText(request.messages).trim();
    if (text === '') continue;
    const key = JSON.stringify([normaliseText(text), request.userLevel, request.service, request.project, request.priority]);
    const known = byText.get(key);
    if (known) {
      known.count++;
      continue;
    }
    const { rule } = await engine.decide(toSubject(request));
    byText.set(key, { text, count: 1, rule: engine.isDefault(rule) ? undefined : rule, request });
  }
  return [...byText.values()];
}

/** By wording: offline, and the same whatever service the rules use. */
async function likenessOf(texts: readonly string[]): Promise<(a: string, b: string) => number> {
  const unique = [...new Set(texts)];
  const vectors = await createBuiltinEmbedder().embed(unique, { timeoutMs: 0 });
  const known = new Map(unique.map((text, index) => [text, sparse(vectors[index] as Float32Array)]));
  return (a, b) => {
    const [left, right] = [known.get(a), known.get(b)];
    let sum = 0;
    for (const [at, value] of left ?? []) sum += value * (right?.get(at) ?? 0);
    return sum;
  };
}
function sparse(vector: Float32Array): Map<number, number> {
  return new Map([...vector.entries()].filter(([, value]) => value !== 0));
}

/** Keywords and examples, wherever in `match` they stand. */
function wordsOf({ id, match }: RuleConfig): RuleWords {
  const texts: string[] = [];
  const collect = (value: unknown) => {
    if (Array.isArray(value)) for (const item of value) collect(item);
    else if (isRecord(value)) {
      for (const [key, inner] of Object.entries(value)) {
        if (key === 'keywords' || key === 'examples') texts.push(...[inner].flat().map(String));
        else if (key !== 'not') collect(inner);
      }
    }
  };
  collect(match);
  return { id, texts };
}

interface Trial {
  room: RoutingRoom;
  config: Config;
  engine: RouteEngine;
  asked: readonly Asked[];
  options: MineOptions;
  /** Rules that were proposed already. */
  used: readonly string[];
}

/** Only questions with one of the new words can be decided otherwise. */
async function tryOut({ room, config, engine: live, asked, options, used }: Trial, group: MinedGroup): Promise<Proposal> {
  const { rules, proposed } = withKeywords(config.route_rules, group, live, used);
  const engine = room.compileRules(config, rules);
  const words = group.keywords.map(({ word }) => word);
  const proposal: Proposal = { ...group, proposed, captured: 0, examples: [], taken: [] };
  for (const { text, count, rule, request } of asked) {
    const normalised = normaliseText(text).replace(/\s+/gu, ' ');
    if (rule === proposed.id || !words.some((word) => normalised.includes(word))) continue;
    const decision = await engine.decide(options.toSubject(request));
    if (decision.rule !== proposed.id) continue;
    if (rule === undefined) {
      proposal.captured += count;
      if (proposal.examples.length < EXAMPLES) proposal.examples.push(text);
      continue;
    }
    const known = proposal.taken.find(({ from }) => from === rule);
    if (known) known.questions += count;
    else proposal.taken.push({ from: rule, questions: count, example: text });
  }
  return proposal;
}

/** The rules with the words in the rule that they feed, or in a new one above the default. */
function withKeywords(
  rules: readonly RuleConfig[],
  { rule: id, keywords }: MinedGroup,
  engine: Pick<RouteEngine, 'isDefault'>,
  used: readonly string[],
): { rules: RuleConfig[]; proposed: RuleConfig } {
  const words = keywords.map(({ word }) => word);
  const target = rules.find((rule) => rule.id === id);
  if (target) {
    const proposed = { ...target, match: widened(target.match, words) };
    return { rules: rules.map((rule) => (rule === target ? proposed : rule)), proposed };
  }
  const ids = new Set([...rules.map((rule) => rule.id), ...used]);
  let number = 1;
  while (ids.has(`mined_${number}`)) number++;
  const proposed: RuleConfig = { id: `mined_${number}`, match: { keywords: words }, model: 'default_model' };
  const last = rules.findIndex((rule) => engine.isDefault(rule.id));
  const at = last < 0 ? rules.length : last;
  return { rules: [...rules.slice(0, at), proposed, ...rules.slice(at)], proposed };
}

function widened(match: unknown, words: readonly string[]): unknown {
  if (isRecord(match) && Array.isArray(match.keywords) && match.require_all !== true) return { ...match, keywords: [...match.keywords, ...words] };
  if (isRecord(match) && Array.isArray(match.any) && Object.keys(match).length === 1) return { any: [...match.any, { keywords: words }] };
  return { any: [match, { keywords: words }] };
}
