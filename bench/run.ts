// npm run bench [-- --quick] [-- --only json,sse] [-- --soak 10m]: hermes beside a bare Node proxy, http-proxy-3, nginx and Portkey's gateway,
// in one run, A B A B, medians of ratios. How to read it: docs/performance.md.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toChart } from './parts/chart.ts';
import { type CommandLine, parseCommandLine } from './parts/command-line.ts';
import { Fleet } from './parts/fleet.ts';
import { describeMachine } from './parts/machine.ts';
import { runMain } from './parts/run-main.ts';
import type { Scenario, Section } from './parts/scenario.ts';
import { root } from './parts/servers.ts';
import { coldStart } from './scenarios/cold-start.ts';
import { fixedRate } from './scenarios/fixed-rate.ts';
import { options, singleOptions } from './scenarios/options.ts';
import { saturation } from './scenarios/saturation.ts';
import { slowStreams } from './scenarios/slow-streams.ts';
import { soak } from './scenarios/soak.ts';

const SCENARIOS: readonly Scenario[] = [...saturation, ...fixedRate, ...slowStreams, ...options, ...coldStart];

/** Of the rounds, for what no goal is set for. */
const FEWER = 0.6;

/** Throws for a name that nobody has. */
function choose({ only, quick }: CommandLine): readonly Scenario[] {
  if (only === undefined) return SCENARIOS.filter((scenario) => !quick || scenario.quick);
  const known = [...SCENARIOS, ...singleOptions];
  return only.map((name) => {
    const found = known.find((scenario) => scenario.name === name);
    if (found === undefined) throw new Error(`There is no scenario "${name}"; there are ${known.map((scenario) => scenario.name).join(', ')}.`);
    return found;
  });
}

function toText(sections: readonly Section[], settings: CommandLine): string {
  const rounds = `${settings.rounds} rounds (${Math.ceil(settings.rounds * FEWER)} where no goal is set) of ${settings.seconds} s a contestant, in turn (A B A B); medians, ratios of the same round; 32 connections.`;
  const parts = sections.map(({ title, lines }) => `## ${title}\n\n${lines.join('\n')}\n`);
  return `# npm run bench\n\n${describeMachine()}.\n${rounds}\n\n${parts.join('\n')}`;
}

/** The whole run is the one that the README shows; what is only a part of it stays out of the tree. */
function keep(sections: readonly Section[], text: string, whole: boolean): void {
  const folder = whole ? join(root, 'bench') : join(root, '.bench');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'results.md'), text);
  const groups = sections.flatMap(({ title, bars }) => (bars ? [{ title, bars }] : []));
  if (groups.length > 0)
    writeFileSync(join(folder, 'results.svg'), toChart(groups, 'Requests a second, to a bare Node proxy (1.00). One process each, one run.'));
  process.stderr.write(`${join(folder, 'results.md')}\n`);
}

async function main(): Promise<void> {
  const settings = parseCommandLine(process.argv.slice(2));
  if (settings.list) {
    process.stdout.write([...SCENARIOS, ...singleOptions].map(({ name, title }) => `${name.padEnd(20)} ${title}\n`).join(''));
    return;
  }
  const chosen = choose(settings);
  const fleet = await Fleet.start(settings.quick);
  const sections: Section[] = [];
  if ((await fleet.portkey()) === undefined) process.stderr.write('Portkey is left out: npm ci --prefix bench/portkey brings it\n');
  if (settings.soakMinutes !== undefined) sections.push(await soak(fleet, settings));
  else
    for (const scenario of chosen) {
      const began = performance.now();
      sections.push(await scenario.run(fleet, scenario.main ? settings : { ...settings, rounds: Math.ceil(settings.rounds * FEWER) }));
      process.stderr.write(`${scenario.name}: ${((performance.now() - began) / 1000).toFixed(0)} s\n`);
    }
  const text = toText(sections, settings);
  process.stdout.write(text);
  keep(sections, text, !settings.quick && settings.only === undefined && settings.soakMinutes === undefined);
}

await runMain(main);
