import type { UsageLine } from './provider-usage.ts';

/** What hermes has booked for one of the provider's models. */
export interface BookedUsage {
  /** The upstream's name for the model. */
  model: string;
  provider: string;
  calls: number;
  estimatedCalls: number;
  input: number;
  cached: number;
  output: number;
}
export interface Verified {
  model: string;
  theirs: { requests: number | undefined; input: number; cached: number | undefined; output: number } | undefined;
  ours: Omit<BookedUsage, 'model' | 'provider'> | undefined;
  agrees: boolean;
}

/** Providers date the models that they serve: `gpt-4o` is billed as `gpt-4o-2024-08-06`. */
function isSameModel(theirs: string, ours: string): boolean {
  if (theirs === ours) return true;
  return theirs.startsWith(`${ours}-`) && /^[-\d]+$/.test(theirs.slice(ours.length));
}

/**
 * The provider's counts beside hermes' own, one row a model. Models of a provider that the file does not speak of at all are
 * left out. Requests are shown, not judged: providers count those that they refused differently.
 */
export function verifyUsage(lines: readonly UsageLine[], booked: readonly BookedUsage[]): Verified[] {
  const names = [...new Set(booked.map(({ model }) => model))].sort((a, b) => b.length - a.length);
  const nameOf = (model: string): string => names.find((name) => isSameModel(model, name)) ?? model;
  const theirs = groupBy(lines, ({ model }) => nameOf(model));
  const ours = groupBy(booked, ({ model }) => model);
  const providers = new Set(booked.filter(({ model }) => theirs.has(model)).map(({ provider }) => provider));
  const models = new Set([...theirs.keys(), ...booked.filter(({ provider }) => providers.has(provider)).map(({ model }) => model)]);
  return [...models].sort().map((model) => {
    const said = theirs.get(model);
    const kept = ours.get(model);
    const row = { model, theirs: said && sumTheirs(said), ours: kept && sumOurs(kept) };
    return { ...row, agrees: agree(row.theirs, row.ours) };
  });
}

function groupBy<T>(list: readonly T[], keyOf: (entry: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const entry of list) {
    const key = keyOf(entry);
    const group = groups.get(key);
    if (group) group.push(entry);
    else groups.set(key, [entry]);
  }
  return groups;
}

function sumTheirs(lines: readonly UsageLine[]): NonNullable<Verified['theirs']> {
  const sum = (pick: (line: UsageLine) => number | undefined): number | undefined =>
    lines.some((line) => pick(line) !== undefined) ? lines.reduce((total, line) => total + (pick(line) ?? 0), 0) : undefined;
  return {
    requests: sum(({ requests }) => requests),
    input: sum(({ input }) => input) ?? 0,
    cached: sum(({ cached }) => cached),
    output: sum(({ output }) => output) ?? 0,
  };
}

function sumOurs(rows: readonly BookedUsage[]): NonNullable<Verified['ours']> {
  const sum = (pick: (row: BookedUsage) => number): number => rows.reduce((total, row) => total + pick(row), 0);
  return {
    calls: sum(({ calls }) => calls),
    estimatedCalls: sum(({ estimatedCalls }) => estimatedCalls),
    input: sum(({ input }) => input),
    cached: sum(({ cached }) => cached),
    output: sum(({ output }) => output),
  };
}

function agree(theirs: Verified['theirs'], ours: Verified['ours']): boolean {
  const [a, b] = [theirs ?? { input: 0, output: 0, cached: undefined }, ours ?? { input: 0, output: 0, cached: 0 }];
  return a.input === b.input && a.output === b.output && (a.cached === undefined || a.cached === b.cached);
}
