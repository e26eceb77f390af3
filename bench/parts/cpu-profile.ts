import { fileURLToPath } from 'node:url';

/** As V8 writes it (`.cpuprofile`). */
export interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number; columnNumber: number }; children?: number[] }[];
  samples: number[];
  /** Microseconds since the sample before. */
  timeDeltas: number[];
}
/** A call and what it called, times in microseconds. */
export interface Frame {
  name: string;
  /** `src/pipeline/compose.js:12`, or empty for what is V8's own. */
  place: string;
  self: number;
  total: number;
  children: Frame[];
}

/** What V8 names for itself; of it, waiting is nobody's work. */
const WAITING = new Set(['(idle)']);

/** The tree of calls; equal calls of one parent are one frame. */
export function toFrames(profile: CpuProfile, root: string): Frame {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const self = new Map<number, number>();
  profile.samples.forEach((id, at) => {
    self.set(id, (self.get(id) ?? 0) + Math.max(0, profile.timeDeltas[at] ?? 0));
  });
  const build = (ids: readonly number[]): Frame[] => {
    const groups = new Map<string, number[]>();
    for (const id of ids) {
      const node = nodes.get(id);
      if (node === undefined || WAITING.has(node.callFrame.functionName)) continue;
      const { functionName, url, lineNumber, columnNumber } = node.callFrame;
      const key = `${functionName}|${url}|${lineNumber}|${columnNumber}`;
      groups.set(key, [...(groups.get(key) ?? []), id]);
    }
    return [...groups.values()].map((group) => {
      const frame = nodes.get(group[0] ?? 0)?.callFrame;
      const children = build(group.flatMap((id) => nodes.get(id)?.children ?? []));
      const own = group.reduce((sum, id) => sum + (self.get(id) ?? 0), 0);
      const total = children.reduce((sum, child) => sum + child.total, own);
      return { name: frame?.functionName || '(anonymous)', place: placeOf(frame?.url ?? '', frame?.lineNumber ?? -1, root), self: own, total, children };
    });
  };
  const top = profile.nodes.find(({ callFrame }) => callFrame.functionName === '(root)');
  const children = build(top?.children ?? []).sort((a, b) => b.total - a.total);
  return { name: 'all', place: '', self: 0, total: children.reduce((sum, { total }) => sum + total, 0), children };
}

export interface FunctionTime {
  name: string;
  place: string;
  self: number;
  /** With what it called; once, however deep it called itself. */
  total: number;
}

/** Every function with its time, the longest by itself first. */
export function toFunctions(tree: Frame): FunctionTime[] {
  const found = new Map<string, FunctionTime>();
  const visit = (frame: Frame, above: ReadonlySet<string>): void => {
    const key = `${frame.name} ${frame.place}`;
    const known = found.get(key) ?? { name: frame.name, place: frame.place, self: 0, total: 0 };
    found.set(key, known);
    known.self += frame.self;
    if (!above.has(key)) known.total += frame.total;
    const here = new Set([...above, key]);
    for (const child of frame.children) visit(child, here);
  };
  for (const child of tree.children) visit(child, new Set());
  return [...found.values()].sort((a, b) => b.self - a.self);
}

function placeOf(url: string, line: number, root: string): string {
  if (url === '') return '';
  const file = url.startsWith('file:') ? fileURLToPath(url) : url;
  return `${file
    .replace(root, '')
    .replace(/^dist\//, '')
    .replace(/^.*node_modules\//, '')}:${line + 1}`;
}
