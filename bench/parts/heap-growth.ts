import { readFileSync } from 'node:fs';
import { table } from './rounds.ts';

interface Kind {
  count: number;
  bytes: number;
}
interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[], ...unknown[]] } };
  nodes: number[];
  strings: string[];
}
const MOST = 15;
const LONGEST_NAME = 60;

/** Objects by what made them. */
function kindsOf(file: string): Map<string, Kind> {
  const { snapshot, nodes, strings } = JSON.parse(readFileSync(file, 'utf8')) as Snapshot;
  const { node_fields: fields, node_types } = snapshot.meta;
  const [type, name, size] = ['type', 'name', 'self_size'].map((field) => fields.indexOf(field)) as [number, number, number];
  const types = node_types[0];
  const kinds = new Map<string, Kind>();
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = types[nodes[at + type] ?? 0] ?? '';
    // The text of a string would make each a kind of its own.
    const key = kind === 'object' || kind === 'closure' || kind === 'native' ? `${kind} ${strings[nodes[at + name] ?? 0]?.slice(0, LONGEST_NAME)}` : kind;
    const known = kinds.get(key) ?? { count: 0, bytes: 0 };
    known.count++;
    known.bytes += nodes[at + size] ?? 0;
    kinds.set(key, known);
  }
  return kinds;
}

/** What grew most between two heap snapshots, as Markdown. */
export function compareSnapshots(before: string, after: string): string[] {
  const [old, now] = [kindsOf(before), kindsOf(after)];
  const grown = [...now].map(([kind, { count, bytes }]) => {
    const earlier = old.get(kind) ?? { count: 0, bytes: 0 };
    return { kind, count: count - earlier.count, bytes: bytes - earlier.bytes };
  });
  const total = (kinds: ReadonlyMap<string, Kind>): string => ([...kinds.values()].reduce((sum, { bytes }) => sum + bytes, 0) / 1024 ** 2).toFixed(1);
  const most = grown.sort((a, b) => b.bytes - a.bytes).slice(0, MOST);
  return [
    `The heap holds ${total(now)} MB, ${total(old)} before; what grew most:`,
    '',
    ...table(
      ['', 'more of them', 'kB'],
      most.map(({ kind, count, bytes }) => [kind.replaceAll('|', '/'), String(count), (bytes / 1024).toFixed(0)]),
    ),
  ];
}
