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

const warm = new Set<Server>();
/** Little code, soon compiled. */
const LIGHT = new Set(['bare proxy', 'http-proxy-3', 'nginx', 'paced upstream']);

/** A B A B: whatever else the machine does befalls all of them. Gives each side's rounds, in order. */
export async function alternate<Load, Result extends { errors: number }>(
  title: string,
  sides: readonly Side<Load>[],
  settings: CommandLine,
  measure: (server: Server, load: Load, seconds: number) => Promise<Result>,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(sides.map(({ label }) => [label, []]));
  for (let round = -1; round < settings.rounds; round++) {
    for (const { label, server, load, mayFail } of sides) {
      const warmUp = warm.has(server) || LIGHT.has(server.name) ? settings.warmUpSeconds : settings.firstWarmUpSeconds;
      const result = await measure(server, load, round < 0 ? warmUp : settings.seconds);
      warm.add(server);
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
