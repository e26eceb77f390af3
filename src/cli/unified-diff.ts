/** Lines around a change. */
const CONTEXT = 3;
type Edit = [kind: ' ' | '-' | '+', line: string];

/** What `patch` and `git apply` take: from one text to the other. '' when they are the same. */
export function unifiedDiff(before: string, after: string, name: string): string {
  if (before === after) return '';
  const edits = editsOf(linesOf(before), linesOf(after));
  const hunks = hunksOf(edits);
  return [`--- a/${name}`, `+++ b/${name}`, ...hunks.flatMap((hunk) => printHunk(edits, hunk))].join('\n').concat('\n');
}

/** A last line without its newline is another line than one with it. */
function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  else lines[lines.length - 1] += '\n\\ No newline at end of file';
  return lines;
}

/** By the longest common subsequence of what lies between the common beginning and end. */
function editsOf(a: readonly string[], b: readonly string[]): Edit[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [olds, news] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const width = news.length + 1;
  const common = new Uint32Array((olds.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] as number;
  for (let i = olds.length - 1; i >= 0; i--) {
    for (let j = news.length - 1; j >= 0; j--) {
      common[i * width + j] = olds[i] === news[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const edits: Edit[] = a.slice(0, head).map((line) => [' ', line]);
  let [i, j] = [0, 0];
  while (i < olds.length || j < news.length) {
    if (i < olds.length && j < news.length && olds[i] === news[j]) {
      edits.push([' ', olds[i] as string]);
      i++;
      j++;
    } else if (j >= news.length || (i < olds.length && at(i + 1, j) >= at(i, j + 1))) edits.push(['-', olds[i++] as string]);
    else edits.push(['+', news[j++] as string]);
  }
  return [...edits, ...a.slice(a.length - tail).map((line): Edit => [' ', line])];
}

/** Ranges of edits, each with its context; those that touch are one. */
function hunksOf(edits: readonly Edit[]): { from: number; to: number }[] {
  const hunks: { from: number; to: number }[] = [];
  for (const [index, [kind]] of edits.entries()) {
    if (kind === ' ') continue;
    const [from, to] = [Math.max(0, index - CONTEXT), Math.min(edits.length, index + CONTEXT + 1)];
    const last = hunks.at(-1);
    if (last && from <= last.to) last.to = to;
    else hunks.push({ from, to });
  }
  return hunks;
}

function printHunk(edits: readonly Edit[], { from, to }: { from: number; to: number }): string[] {
  const count = (list: readonly Edit[], other: '-' | '+') => list.filter(([kind]) => kind !== other).length;
  const [before, part] = [edits.slice(0, from), edits.slice(from, to)];
  const range = (other: '-' | '+') => {
    const lines = count(part, other);
    return `${count(before, other) + (lines === 0 ? 0 : 1)}${lines === 1 ? '' : `,${lines}`}`;
  };
  return [`@@ -${range('+')} +${range('-')} @@`, ...part.map(([kind, line]) => kind + line)];
}
