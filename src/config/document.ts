import { type Document, isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument, Scalar, visit, type YAMLSeq } from 'yaml';
import { type ConfigProblem, formatPath, type Path } from './problems.ts';
import { substitute } from './substitute.ts';

/** Expansions of one alias chain; beyond it the file is a bomb, not a configuration. */
const MAX_ALIASES = 200;

/** A YAML file: its value with `${NAME}` filled in, and where in the file each part of it stands. */
export interface ConfigDocument {
  readonly file: string;
  readonly value: unknown;
  readonly problems: ConfigProblem[];
  /** Adds a problem at a path, once a message; nothing where `${NAME}` already failed. */
  report(path: Path, message: string): void;
  /** A problem with its place, without adding it. */
  problemAt(path: Path, message: string): ConfigProblem;
}

export function readDocument(text: string, file: string, env: Readonly<Record<string, string | undefined>>, listAllowed = false): ConfigDocument {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true, stringKeys: true });
  joinLists(document);
  const problems: ConfigProblem[] = [];
  const failed = new Set<string>();
  const add = (offset: number, path: string, message: string) => {
    const at = lines.linePos(offset);
    if (!problems.some((other) => other.line === at.line && other.path === path && other.message === message))
      problems.push({ file, line: Math.max(1, at.line), column: Math.max(1, at.col), path, message });
  };
  const report = (path: Path, message: string) => {
    const where = formatPath(path);
    if (!failed.has(where)) add(offsetOf(document, path), where, message);
  };

  // After the first break everything that follows is "unexpected"; twice the same key says nothing of the rest.
  const broken = document.errors.find((error) => error.code !== 'DUPLICATE_KEY');
  for (const error of document.errors) {
    if (error === broken || error.code === 'DUPLICATE_KEY')
      add(error.pos[0], '', mend(error.code, error.message, text.slice(error.pos[0] - 1, error.pos[0] + 1)));
  }
  let value: unknown;
  visit(document, {
    Alias(_, node) {
      if (node.resolve(document) === undefined) add(node.range?.[0] ?? 0, '', `\`*${node.source}\` has no anchor \`&${node.source}\` before it`);
    },
  });
  if (problems.length === 0) {
    fillIn(document, env, (node, path, message) => {
      const where = formatPath(path);
      failed.add(where);
      add(node.range?.[0] ?? 0, where, message);
    });
    value = toValue(document, listAllowed, add);
  }
  return { file, value, problems, report, problemAt: (path, message) => problemAt(file, lines, document, path, message) };
}

/** Fragments that were joined into one file: a list that stands twice at the top (`models:`, `route_rules:`) is one list. */
function joinLists(document: Document.Parsed): void {
  const { contents } = document;
  if (!isMap(contents)) return;
  const lists = new Map<unknown, YAMLSeq>();
  const joined = new Set<Scalar>();
  for (const { key, value } of contents.items) {
    if (!isScalar(key) || !isSeq(value)) continue;
    const list = lists.get(key.value);
    if (list === undefined) lists.set(key.value, value);
    else {
      list.items.push(...value.items);
      joined.add(key);
    }
  }
  const starts = new Set([...joined].map(({ range }) => range?.[0]));
  contents.items = contents.items.filter(({ key }) => !(isScalar(key) && joined.has(key)));
  document.errors = document.errors.filter(({ code, pos }) => code !== 'DUPLICATE_KEY' || !starts.has(pos[0]));
}

function problemAt(file: string, lines: LineCounter, document: Document.Parsed, path: Path, message: string): ConfigProblem {
  const at = lines.linePos(offsetOf(document, path));
  return { file, line: Math.max(1, at.line), column: Math.max(1, at.col), path: formatPath(path), message };
}

/** Without the source text that the parser quotes: it may be a secret. */
function mend(code: string, message: string, around: string): string {
  if (around === `$\{`) return `a \`$\{NAME}\` inside { } or [ ] needs quotes: "$\{NAME}"`;
  if (code === 'TAB_AS_INDENT') return 'a tab is used as indentation: YAML takes spaces only';
  if (code === 'DUPLICATE_KEY') return 'the same key stands twice in one block: remove one of them';
  if (code === 'MULTIPLE_DOCS') return 'the file holds several documents (`---`): one is read';
  const plain = (message.split('\n')[0] ?? message).replace(/[:,]?\s*["'`].*$/, '').replace(/:$/, '');
  return `is not valid YAML: ${plain}`;
}

function toValue(document: Document.Parsed, listAllowed: boolean, add: (offset: number, path: string, message: string) => void): unknown {
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    if (value === null || value === undefined) add(0, '', 'is empty: it needs at least `models:`');
    else if (typeof value !== 'object' || (Array.isArray(value) && !listAllowed)) add(0, '', 'must be a block of keys (`models:`, `route_rules:` …)');
    return dropNulls(value);
  } catch {
    add(0, '', 'expands its aliases (`*name`) too often');
    return undefined;
  }
}

/** A key without a value is the same as no key. What goes to others as it is keeps its nulls. */
const KEEPS_NULLS = new Set(['extra_body', 'parameters', 'plugins']);
function dropNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropNulls);
  if (typeof value !== 'object' || value === null) return value;
  const out: Record<string, unknown> = Object.create(null);
  for (const [key, inner] of Object.entries(value)) {
    if (inner === null) continue;
    out[key] = KEEPS_NULLS.has(key) ? inner : dropNulls(inner);
  }
  return { ...out };
}

/** Values under these go out as they are, so that `${T:-0.2}` must be a number there. */
const UNTYPED = new Set(['extra_body', 'plugins']);
function fillIn(
  document: Document.Parsed,
  env: Readonly<Record<string, string | undefined>>,
  refuse: (node: Scalar, path: Path, message: string) => void,
): void {
  visit(document, {
    Scalar(key, node, ancestors) {
      if (key === 'key' || typeof node.value !== 'string' || !node.value.includes('${')) return;
      const path = pathOf(document, node, ancestors);
      const result = substitute(node.value, env);
      if (result.problem !== undefined) refuse(node, path, result.problem);
      node.value = node.type === Scalar.PLAIN && path.some((part) => typeof part === 'string' && UNTYPED.has(part)) ? retype(result.text) : result.text;
    },
  });
}
function retype(text: string): unknown {
  if (/^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) return Number(text);
  return text === 'true' || text === 'false' ? text === 'true' : text;
}
function pathOf(document: Document.Parsed, node: Node, ancestors: readonly unknown[]): Path {
  const path: (string | number)[] = [];
  const chain = [...ancestors, node];
  for (let i = 0; i < chain.length - 1; i++) {
    const parent = chain[i];
    if (isSeq(parent)) path.push(parent.items.indexOf(chain[i + 1]));
    else if (isPair(parent)) path.push(String(isScalar(parent.key) ? parent.key.value : parent.key));
  }
  return document.contents === node ? [] : path;
}

/** Where a path stands: a block's key, a list's element; the nearest part that exists. */
function offsetOf(document: Document.Parsed, path: Path): number {
  let node: unknown = document.contents;
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === String(part));
      if (!pair) break;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof part === 'number') {
      node = node.items[part];
      if (!isNode(node)) break;
      offset = node.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}
