/** One mistake in the configuration, with its place. */
export interface ConfigProblem {
  file: string;
  /** From 1; 0 when the place is not in a file (an environment variable, a flag). */
  line: number;
  column: number;
  /** `models[0].timeout_ms`; empty for the file as a whole. */
  path: string;
  message: string;
}
export type Path = readonly (string | number)[];

export function formatPath(path: Path): string {
  let out = '';
  for (const part of path) {
    if (typeof part === 'number') out += `[${part}]`;
    else if (/^[\p{L}_$][\p{L}\p{N}_$.-]*$/u.test(part)) out += out === '' ? part : `.${part}`;
    else out += `[${JSON.stringify(part)}]`;
  }
  return out;
}
/** `file:line:column path: message`, on one line. */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.line > 0 ? `${problem.file}:${problem.line}:${problem.column}` : problem.file;
  return `${place}${problem.path === '' ? '' : ` ${problem.path}`}: ${problem.message}`.replace(/\s*[\r\n]+\s*/g, ' ');
}

/** All mistakes of a configuration at once. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const files = [...new Set(problems.map((problem) => problem.file))];
    const sorted = [...problems].sort((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column);
    super(sorted.map(formatProblem).join('\n'));
    this.name = 'ConfigError';
    this.problems = sorted;
  }
}

function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  let beforePrevious: number[] = [];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (beforePrevious[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    beforePrevious = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
/** ` (did you mean \`keywords\`?)`, or nothing when no name is near. */
export function didYouMean(wrong: string, known: Iterable<string>): string {
  if (wrong.length > 64) return '';
  const plain = (name: string) => name.toLowerCase().replace(/[-_.\s]/g, '');
  let best: string | undefined;
  let least = Math.max(1, Math.floor(wrong.length / 3)) + 1;
  for (const name of known) {
    // A unit that was left out (`timeout` for `timeout_ms`) is as near as one wrong letter.
    const shortened = wrong.length > 2 && name.startsWith(`${wrong}_`);
    const far = plain(name) === plain(wrong) ? 0 : shortened ? 1 : distance(wrong.toLowerCase(), name.toLowerCase());
    if (far < least && far < name.length) {
      best = name;
      least = far;
    }
  }
  return best === undefined ? '' : ` (did you mean \`${best}\`?)`;
}
/** What is there to choose from, when there is little of it. */
export function oneOf(known: Iterable<string>): string {
  const names = [...known];
  const shown = names.slice(0, 12).join(', ');
  return names.length > 12 ? `${shown}, …` : shown;
}
