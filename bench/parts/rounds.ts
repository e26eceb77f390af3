import type { CommandLine } from './command-line.ts';
import type { Server } from './servers.ts';
import { median } from './statistics.ts';

export interface Side<Load> {
  label: string;
  server: Server;
  load: Load;
  /** Failures are its result, not the bench's end. */
  mayFail?: boolean;
}

/** The loads that a server has had. */
const warm = new WeakMap<Server, Set<string>>();
/** Little code, soon compiled. */
const LIGHT = new Set(['bare proxy', 'http-proxy-3', 'nginx', 'paced upstream']);
const LIGHT_SECONDS = 1;

type Measure<Load, Result> = (server: Server, load: Load, seconds: number) => Promise<Result>;

async function warmUp<Load, Result extends Counted>({ server, load }: Side<Load>, { warmUp }: CommandLine, measure: Measure<Load, Result>): Promise<Result> {
  const loads = warm.get(server) ?? new Set();
  const known = LIGHT.has(server.name) || loads.has(JSON.stringify(load));
  warm.set(server, loads.add(JSON.stringify(load)));
  let result = await measure(server, load, known ? LIGHT_SECONDS : warmUp.seconds);
  let { requests } = result;
  for (let spent = warmUp.seconds; !known && requests < warmUp.requests && spent < warmUp.mostSeconds && result.errors === 0; spent += warmUp.seconds) {
    result = await measure(server, load, warmUp.seconds);
    requests += result.requests;
  }
  return result;
}

interface Counted {
  requests: number;
  errors: number;
}

/** A B A B: whatever else the machine does befalls all of them. Gives each side's rounds, in order. */
export async function alternate<Load, Result extends Counted>(
  title: string,
  sides: readonly Side<Load>[],
  settings: CommandLine,
  measure: Measure<Load, Result>,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(sides.map(({ label }) => [label, []]));
  for (let round = -1; round < settings.rounds; round++) {
    for (const side of sides) {
      const { label, server, load, mayFail } = side;
      const result = await (round < 0 ? warmUp(side, settings, measure) : measure(server, load, settings.seconds));
      if (result.errors > 0 && !mayFail) throw new Error(`${label} gave ${result.errors} errors in "${title}"`);
      if (round >= 0) results.get(label)?.push(result);
    }
  }
  return results;
}

/** Median over the rounds of one side. */
export function middle<Result>(rounds: readonly Result[], pick: (result: Result) => number): number {
  return median(rounds.map(pick));
}
/** Median of the ratios, each to the other side's figure of the same round. */
export function ratio<Result>(rounds: readonly Result[], to: readonly Result[], pick: (result: Result) => number): number {
  return median(rounds.map((result, index) => pick(result) / pick(to[index] ?? result)));
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [`| ${head.join(' | ')} |`, `| ${head.map((_, at) => (at === 0 ? '---' : '---:')).join(' | ')} |`, ...rows.map((row) => `| ${row.join(' | ')} |`)];
}
