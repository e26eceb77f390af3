import { startApp } from '../test/app-kit.ts';
import { createFakeUpstream } from '../test/fake-upstream.ts';
import { fuzzRequests } from '../test/faults/fuzz-requests.ts';
import { feedGarbage } from '../test/faults/garbage-streams.ts';
import { runMachineFaults } from '../test/faults/machine-faults.ts';
import { createRandom } from '../test/faults/random.ts';

/** The long form of test/faults: `npm run test:faults -- [seed] [rounds]`. Prints its seed; the same seed does the same. Exit 1: something was lost. */
const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const rounds = Number(process.argv[3] ?? 1);
const REQUESTS = 10_000;
const STREAMS = 1000;
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const SECRET = 'sk-upstream-never-told';
let wrong = 0;
const tell = (what: string, problems: readonly string[]): void => {
  wrong += problems.length;
  for (const problem of problems.slice(0, 10)) say(`  WRONG ${what}: ${problem}`);
};

for (let round = 0; round < rounds; round++) {
  const mine = seed + round;
  say(`seed ${mine}`);
  const upstream = await createFakeUpstream({ strict: false });
  const app = await startApp(
    { models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }] },
    { env: { UP_KEY: SECRET } },
  );
  const fuzz = await fuzzRequests(app.app.port, REQUESTS, createRandom(mine), SECRET);
  say(`  strange requests ${fuzz.sent}: ${JSON.stringify(fuzz.statuses)}`);
  tell('request', fuzz.wrong);
  tell('stream', await feedGarbage(app, upstream, 'm', STREAMS, createRandom(mine)));
  say(`  strange streams ${STREAMS}`);
  await app.stop();
  await upstream.close();
  const report = await runMachineFaults({ seed: mine, faults: 12, clients: 8 });
  say(`  machines ${JSON.stringify(report)}`);
  tell('machines', report.wrong);
}
say(wrong === 0 ? 'lost: 0' : `${wrong} things went wrong; run again with seed ${seed}`);
process.exit(wrong === 0 ? 0 : 1);
