import { isAlias, isMap, isSeq, LineCounter, parseDocument } from 'yaml';
import { isRecord } from '../wire/json.ts';
import type { LintRule, LintSource } from './lint.ts';

/**
 * The rules of a configuration file, however wrong the rest of it is: what cannot be read is left out. Throws an Error with
 * the line when the file is not YAML at all. `added`: tools that plugins define.
 */
export function readLintSource(text: string, tests: string | undefined, added: readonly string[] = []): LintSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true, uniqueKeys: false });
  const file: unknown = document.toJS({ maxAliasCount: 200 });
  const fatal = document.errors[0];
  if (fatal && !isRecord(file) && !Array.isArray(file)) {
    throw new Error(`line ${lines.linePos(fatal.pos[0]).line}: it is not YAML: ${fatal.message.split('\n')[0] ?? ''}`);
  }
  const root = isRecord(file) ? file : { route_rules: file };
  const listed = isMap(document.contents) ? document.get('route_rules', true) : document.contents;
  const node = isAlias(listed) ? listed.resolve(document) : listed;
  const lineOf = (index: number): number | undefined => {
    const item: unknown = isSeq(node) ? node.items[index] : undefined;
    const range = typeof item === 'object' && item !== null && 'range' in item ? item.range : undefined;
    const offset: unknown = Array.isArray(range) ? range[0] : undefined;
    return typeof offset === 'number' ? lines.linePos(offset).line : undefined;
  };
  return {
    rules: records(root.route_rules).map((rule, index) => toRule(rule, index, lineOf(index))),
    models: modelNames(root),
    tools: new Set([...records(root.tools).flatMap((tool) => texts([tool.mcp === undefined ? tool.id : `${String(tool.id)}.*`])), ...added]),
    keyTools: keyTools(root),
    tested: tests === undefined ? undefined : testedRules(tests),
  };
}

function toRule(rule: Record<string, unknown>, index: number, line: number | undefined): LintRule {
  const { id, match, model, tools } = rule;
  return {
    id: typeof id === 'string' || typeof id === 'number' ? String(id) : `route_rules[${index}]`,
    match,
    model: typeof model === 'string' ? model : undefined,
    tools: texts(tools),
    line,
  };
}

/** A list's objects in their places; what is none becomes an empty one, so that indexes stay. */
function records(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.map((entry: unknown) => (isRecord(entry) ? entry : {})) : [];
}
function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}

function modelNames(root: Record<string, unknown>): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  for (const model of records(root.models)) {
    const failover = isRecord(model.failover) ? model.failover : {};
    const upstreams = records(failover.upstreams).map((upstream) => upstream.model_name);
    for (const name of texts([model.id, model.model_name, ...upstreams, ...(Array.isArray(model.aliases) ? model.aliases : [])])) names.add(name);
  }
  return names.size === 0 ? undefined : names;
}

/** A key without `tools` may use all; a file without keys leaves that to the environment. */
function keyTools(root: Record<string, unknown>): string[][] | undefined {
  const auth = isRecord(root.auth) ? root.auth : {};
  const keys = [...records(auth.keys), ...records(auth.signatures)];
  if (keys.length === 0 || keys.some((key) => !Array.isArray(key.tools))) return undefined;
  return keys.map((key) => texts(key.tools));
}

function testedRules(text: string): ReadonlySet<string> {
  const list: unknown = parseDocument(text, { prettyErrors: false }).toJS();
  const asked = records(list).filter(({ questions }) => texts(questions).length > 0);
  return new Set(asked.flatMap(({ rule }) => texts([rule])));
}
