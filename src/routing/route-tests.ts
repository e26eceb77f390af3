import { parseDocument } from 'yaml';
import type { Config } from '../contracts/config.ts';
import type { Ask } from '../contracts/exchange.ts';
import type { RouteEngine, RouteSubject } from '../contracts/routing.ts';
import { isRecord } from '../wire/json.ts';

/** Questions that should hit one rule, asked with these fields. */
export interface RouteTest {
  rule: string;
  questions: string[];
  fields: Ask;
}
export interface RouteTestReport {
  total: number;
  passed: number;
  /** One row a rule of the file, in its order. */
  rules: { rule: string; questions: number; hit: number }[];
  /** What went elsewhere. */
  failures: { question: string; want: string; got: string; why: string }[];
  /** How often a question of `want` went to `got`; most frequent first. */
  confusions: { want: string; got: string; count: number }[];
}

const FIELD_NAMES = ['user_level', 'service_type', 'project', 'priority'] as const;

/** `route_tests.yaml`: a list of `{ rule, questions, fields }`. Throws an Error that names the entry. */
export function parseRouteTests(text: string): RouteTest[] {
  const document = parseDocument(text, { prettyErrors: true });
  const broken = document.errors[0];
  if (broken) throw new Error(`it is not YAML: ${broken.message}`);
  const list: unknown = document.toJS();
  if (!Array.isArray(list)) throw new Error('it must be a list of { rule, questions, fields }');
  return list.map((entry: unknown, index) => {
    const place = `entry ${index + 1}`;
    if (!isRecord(entry) || typeof entry.rule !== 'string') throw new Error(`${place} needs a rule`);
    const { questions } = entry;
    if (!Array.isArray(questions) || questions.length === 0) throw new Error(`${place} (${entry.rule}) needs questions: a list of texts`);
    return { rule: entry.rule, questions: questions.map(String), fields: readFields(entry.fields, place) };
  });
}

function readFields(value: unknown, place: string): Ask {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) throw new Error(`${place}: fields is a block of ${FIELD_NAMES.join(', ')}`);
  const unknown = Object.keys(value).find((key) => !FIELD_NAMES.some((name) => name === key));
  if (unknown !== undefined) throw new Error(`${place}: there is no field ${unknown}; there are ${FIELD_NAMES.join(', ')}`);
  const text = (name: (typeof FIELD_NAMES)[number]) => (value[name] === undefined ? undefined : String(value[name]));
  const { priority } = value;
  if (priority !== undefined && priority !== 'urgent' && priority !== 'normal' && priority !== 'batch')
    throw new Error(`${place}: priority is urgent, normal or batch`);
  const [userLevel, serviceType, project] = [text('user_level'), text('service_type'), text('project')];
  return {
    ...(userLevel !== undefined && { userLevel }),
    ...(serviceType !== undefined && { serviceType }),
    ...(project !== undefined && { project }),
    ...(priority !== undefined && { priority }),
  };
}

/** A request of somebody who may do everything: tests are about rules, not about keys. */
function toSubject(text: string, ask: Ask): RouteSubject {
  return {
    ask,
    request: { messages: [{ role: 'user', content: text }] },
    caller: {
      service: ask.serviceType ?? 'default',
      project: ask.project ?? 'default',
      user: ask.user,
      userLevel: ask.userLevel,
      priority: ask.priority ?? 'normal',
    },
    principal: undefined,
  };
}

export async function runRouteTests(tests: readonly RouteTest[], engine: RouteEngine): Promise<RouteTestReport> {
  const rules = new Map<string, { rule: string; questions: number; hit: number }>();
  const failures: RouteTestReport['failures'] = [];
  for (const test of tests) {
    const row = rules.get(test.rule) ?? { rule: test.rule, questions: 0, hit: 0 };
    rules.set(test.rule, row);
    for (const question of test.questions) {
      row.questions++;
      const { rule, why } = await engine.explain(toSubject(question, test.fields));
      if (rule === test.rule) row.hit++;
      else failures.push({ question, want: test.rule, got: rule, why });
    }
  }
  const total = [...rules.values()].reduce((sum, row) => sum + row.questions, 0);
  return { total, passed: total - failures.length, rules: [...rules.values()], failures, confusions: countConfusions(failures) };
}

function countConfusions(failures: RouteTestReport['failures']): RouteTestReport['confusions'] {
  const counts = new Map<string, { want: string; got: string; count: number }>();
  for (const { want, got } of failures) {
    const key = JSON.stringify([want, got]);
    const row = counts.get(key) ?? { want, got, count: 0 };
    row.count++;
    counts.set(key, row);
  }
  return [...counts.values()].sort((a, b) => b.count - a.count);
}

/** Rules that no question was written for. */
export function untestedRules(config: Config, tests: readonly RouteTest[]): string[] {
  const tested = new Set(tests.map(({ rule }) => rule));
  return config.route_rules.map(({ id }) => id).filter((id) => !tested.has(id));
}
