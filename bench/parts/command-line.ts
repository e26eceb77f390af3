import { parseArgs } from 'node:util';

/** What does not count: a compiler at work is no steady state. */
export interface WarmUp {
  /** Of one measurement; as many of them as it takes. */
  seconds: number;
  /** After so many a process runs compiled code. */
  requests: number;
  /** Whoever answers few a second is not waited for any longer. */
  mostSeconds: number;
}

export interface CommandLine {
  quick: boolean;
  /** Names of scenarios; all when undefined. */
  only: readonly string[] | undefined;
  rounds: number;
  /** Of a round. */
  seconds: number;
  warmUp: WarmUp;
  /** Minutes of one long load instead of all scenarios. */
  soakMinutes: number | undefined;
  /** With `--soak`: heap snapshots, which cost memory themselves. */
  snapshots: boolean;
  list: boolean;
}

const USAGE = `npm run bench [-- OPTIONS]
  --quick          fewer scenarios and rounds, about a minute
  --only a,b       these scenarios (--list tells their names)
  --rounds N       rounds that count, of each contestant in turn (5; quick 3)
  --seconds N      of a round (1)
  --soak 10m       one long load instead: memory after many requests beside that after 100,000
  --snapshots      with --soak: two heap snapshots, and what grew between them
`;

/** Throws with the usage for what it does not know. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const options = {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    soak: { type: 'string' },
    snapshots: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options });
    const { quick, snapshots, list } = values;
    return {
      quick,
      list,
      snapshots,
      only: values.only?.split(','),
      rounds: whole(values.rounds, quick ? 3 : 5),
      seconds: whole(values.seconds, 1),
      warmUp: quick ? { seconds: 2, requests: 5_000, mostSeconds: 4 } : { seconds: 4, requests: 15_000, mostSeconds: 16 },
      soakMinutes: values.soak === undefined ? undefined : minutes(values.soak),
    };
  } catch (thrown) {
    throw new Error(`${thrown instanceof Error ? thrown.message : String(thrown)}\n\n${USAGE}`);
  }
}

function whole(text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`"${text}" is not a whole number from 1`);
  return Number(text);
}
function minutes(text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(s|m|h)$/.exec(text) ?? [];
  if (count === undefined) throw new Error(`"${text}" is not a time like 90s, 10m or 1h`);
  return Number(count) * ({ s: 1 / 60, m: 1, h: 60 }[unit ?? 'm'] ?? 1);
}
