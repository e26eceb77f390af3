import { stopAll } from './servers.ts';

/** A script of the bench: what it throws is told, and whatever it has started ends with it. */
export async function runMain(main: () => Promise<void>): Promise<never> {
  try {
    await main();
  } catch (thrown) {
    process.stderr.write(`${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}\n`);
    process.exitCode = 1;
  }
  stopAll();
  process.exit();
}
