import { meetBadCertificates, opensslMissing } from '../test/faults/bad-certificates.ts';
import { sendBadInput } from '../test/faults/bad-input.ts';
import { fillDisk, smallDiskMissing } from '../test/faults/full-disk.ts';
import { runMachineFaults } from '../test/faults/machine-run.ts';

/**
 * The long form of test/faults: `npm run test:faults -- [seed] [rounds] [share]`. Prints its seed; the same seed does the same. `share`: of
 * the bad input, 0 to 1 (default 1: 10,000 strange requests). Exit 1: something was lost.
 */
const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const rounds = Number(process.argv[3] ?? 1);
const share = Number(process.argv[4] ?? 1);
/** Each kind of fault at least once. */
const FAULTS = 24;
const amounts = { requests: 10_000, streams: 1000, smuggled: 2000, bombs: 12, slow: 200 };
const say = (text: string): void => void process.stdout.write(`${text}\n`);
let wrong = 0;
const tell = (what: string, problems: readonly string[]): void => {
  wrong += problems.length;
  for (const problem of problems.slice(0, 10)) say(`  WRONG ${what}: ${problem}`);
};

for (let round = 0; round < rounds; round++) {
  const mine = seed + round;
  say(`seed ${mine}`);
  const counts = Object.fromEntries(Object.entries(amounts).map(([name, count]) => [name, Math.ceil(count * share)])) as typeof amounts;
  const input = await sendBadInput({ seed: mine, ...counts });
  say(`  bad input ${JSON.stringify(counts)}: statuses of strange requests ${JSON.stringify(input.statuses)}`);
  tell('bad input', input.wrong);
  if (!opensslMissing()) {
    const { kinds, wrong: problems } = await meetBadCertificates();
    say(`  bad certificates of ${kinds} kinds`);
    tell('certificates', problems);
  }
  if (!smallDiskMissing()) {
    tell('disk', await fillDisk());
    say('  a full disk');
  }
  const report = await runMachineFaults({ seed: mine, faults: FAULTS, clients: 8 });
  say(`  machines ${JSON.stringify(report)}`);
  tell('machines', report.wrong);
}
say(wrong === 0 ? 'lost: 0' : `${wrong} things went wrong; run again with seed ${seed}`);
process.exit(wrong === 0 ? 0 : 1);
