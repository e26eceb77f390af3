import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skipWithout } from '../services.ts';
import { meetBadCertificates, opensslMissing } from './bad-certificates.ts';
import { sendBadInput } from './bad-input.ts';
import { fillDisk, smallDiskMissing } from './full-disk.ts';
import { runMachineFaults } from './machine-run.ts';

/** The short form of `npm run test:faults`. */
const SEED = Number(process.env.HERMES_SEED ?? 20_261_130);

describe(`faults, seed ${SEED}`, { timeout: 170_000 }, () => {
  it('bad input of clients and upstreams makes no undocumented error, no hang, no stack, no leak', async () => {
    const { statuses, wrong } = await sendBadInput({ seed: SEED, requests: 1000, streams: 120, smuggled: 250, bombs: 3, slow: 60 });
    assert.deepEqual(wrong.slice(0, 5), []);
    for (const status of [200, 400, 401, 404]) assert.ok((statuses[status] ?? 0) > 10, JSON.stringify(statuses));
  });
  it('an upstream that cannot prove who it is gets no request: the next one answers, and with none the caller gets a plain 502', {
    skip: opensslMissing(),
  }, async () => {
    const { kinds, wrong } = await meetBadCertificates();
    assert.deepEqual(wrong, []);
    assert.ok(kinds >= 5);
  });
  it('a full disk refuses turns in plain words, loses none that was answered, and they go on when there is room', { skip: smallDiskMissing() }, async () => {
    assert.deepEqual(await fillDisk(), []);
  });
  it(
    'machines that fail lose and double no turn, do every action once, book every call, and leave nothing behind',
    skipWithout('redis', 'postgres'),
    async () => {
      const report = await runMachineFaults({ seed: SEED, faults: 6, clients: 4 });
      assert.deepEqual(report.wrong, []);
      assert.ok(report.acknowledged > 0 && report.refunds > 0, JSON.stringify(report));
      process.stdout.write(`# machine faults: ${JSON.stringify(report)}\n`);
    },
  );
});
