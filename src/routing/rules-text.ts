import { isMap, isSeq, type Node, parseDocument } from 'yaml';
import { isRecord } from '../wire/json.ts';

/** Rules as they stand in a file: its text, and where in it the list is. */
interface Placed {
  /** Offsets of the list in the text; undefined: the file has none. */
  start: number;
  end: number;
  /** Written in lines of their own with dashes, not in brackets. */
  block: boolean;
}

/**
 * A configuration's text with its `route_rules` replaced by those of a rules file, both as they are written: comments and order
 * stay. Throws an Error for people where the list cannot be found or the result does not say what the rules file says.
 */
export function replaceRules(configText: string, rulesText: string): string {
  const list = listText(rulesText);
  const replaced = replaceList(configText, list);
  const wanted: unknown = rulesOf(parseDocument(rulesText, { merge: true }).toJS({ maxAliasCount: 200 }));
  const got: unknown = rulesOf(parseDocument(replaced, { merge: true }).toJS({ maxAliasCount: 200 }));
  if (JSON.stringify(got) !== JSON.stringify(wanted)) {
    throw new Error('the rules cannot be moved as they are written (anchors of their own file, for example): move them by hand');
  }
  return replaced;
}

function rulesOf(file: unknown): unknown {
  return isRecord(file) ? file.route_rules : file;
}

function placeOf(text: string): Placed | undefined {
  const document = parseDocument(text, { keepSourceTokens: true });
  if (document.errors[0]) throw new Error(`it is not YAML: ${document.errors[0].message.split('\n')[0]}`);
  const node: unknown = isMap(document.contents) ? document.get('route_rules', true) : document.contents;
  if (!isSeq(node) || !node.range) return undefined;
  return { start: node.range[0], end: node.range[1], block: !(node as Node & { flow?: boolean }).flow };
}

/** The rules file's list: its lines without their indent, or the list in brackets. */
function listText(text: string): { block: boolean; text: string } {
  const place = placeOf(text);
  if (!place) throw new Error('it holds no `route_rules:`, and is no list of rules');
  if (!place.block) return { block: false, text: text.slice(place.start, place.end) };
  const from = text.lastIndexOf('\n', place.start - 1) + 1;
  const lines = text.slice(withComments(text, from), place.end).trimEnd().split('\n');
  const indent = place.start - from;
  return { block: true, text: lines.map((line) => (line.slice(0, indent).trim() === '' ? line.slice(indent) : line)).join('\n') };
}

/** The comment lines right above the list's first line belong to its first rule. */
function withComments(text: string, from: number): number {
  let start = from;
  for (;;) {
    const before = text.lastIndexOf('\n', start - 2) + 1;
    if (start === 0 || !/^\s*#/.test(text.slice(before, start))) return start;
    start = before;
  }
}

function replaceList(text: string, list: { block: boolean; text: string }): string {
  const place = placeOf(text);
  const indented = (width: number) =>
    list.text
      .split('\n')
      .map((line) => (line === '' ? line : ' '.repeat(width) + line))
      .join('\n');
  if (!place) return `${text.trimEnd()}\n\nroute_rules:${list.block ? `\n${indented(2)}` : ` ${list.text}`}\n`;
  if (!list.block || !place.block) {
    // In a file of brackets the list must be one, too.
    const flow = list.block ? JSON.stringify(parseDocument(list.text).toJS(), null, 2) : list.text;
    const start = place.block ? withComments(text, text.lastIndexOf('\n', place.start - 1) + 1) - 1 : place.start;
    return `${text.slice(0, start)}${place.block ? ' ' : ''}${flow}${place.block ? '\n' : ''}${text.slice(place.end)}`;
  }
  const from = text.lastIndexOf('\n', place.start - 1) + 1;
  const old = text.slice(place.start, place.end);
  const end = place.end - (old.length - old.trimEnd().length);
  return `${text.slice(0, withComments(text, from))}${indented(place.start - from)}${text.slice(end)}`;
}
