import type { CommandLine } from './command-line.ts';
import type { Fleet } from './fleet.ts';

/** What a scenario tells: its part of the results, and its bars of the chart. */
export interface Section {
  title: string;
  /** Markdown below the title. */
  lines: string[];
  /** Of the chart: throughput to the first contestant's. */
  bars?: { label: string; ratio: number }[];
}
export interface Scenario {
  /** For `--only`. */
  name: string;
  title: string;
  /** Part of `--quick`. */
  quick: boolean;
  /** What goals are set for: all rounds. The others have fewer. */
  main: boolean;
  run(fleet: Fleet, settings: CommandLine): Promise<Section>;
}
