import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { usableProcessors } from '../../src/config/processors.ts';
import { BackOff } from '../../src/workers/back-off.ts';
import { Line } from '../../src/workers/line.ts';

type Asked = { double: { ask: number; answer: number }; fail: { ask: undefined; answer: undefined }; never: { ask: undefined; answer: undefined } };
type Nothing = Record<never, never>;

/** Two ends of one channel that, like the real one, carries JSON. */
function createPair(): { near: Line<Asked, Nothing>; cut(): void } {
  let broken = false;
  const far: Line<Nothing, Asked> = new Line<Nothing, Asked>((message) => near.hear(JSON.parse(JSON.stringify(message))), {
    double: (number) => Promise.resolve(number * 2),
    fail: () => Promise.reject(Object.assign(new Error('the port is taken'), { code: 'EADDRINUSE' })),
    never: () => new Promise(() => undefined),
  });
  const near: Line<Asked, Nothing> = new Line<Asked, Nothing>((message) => {
    if (broken) throw new Error('channel closed');
    far.hear(JSON.parse(JSON.stringify(message)));
  }, {});
  return {
    near,
    cut: () => {
      broken = true;
    },
  };
}

describe('the line between a primary and a worker', () => {
  it('carries answers, each to its question', async () => {
    const { near } = createPair();
    assert.deepEqual(await Promise.all([1, 2, 3].map((number) => near.ask('double', number))), [2, 4, 6]);
  });
  it('carries what went wrong, with its code', async () => {
    await assert.rejects(createPair().near.ask('fail', undefined), { message: 'the port is taken', code: 'EADDRINUSE' });
  });
  it('waits as long as it was told', async () => {
    const timer = setTimeout(() => undefined, 10_000);
    await assert.rejects(createPair().near.ask('never', undefined, 20), /no answer to "never" within 20 ms/);
    clearTimeout(timer);
  });
  it('lets nobody wait when the process is gone', async () => {
    const { near, cut } = createPair();
    const waiting = assert.rejects(near.ask('never', undefined), /the process is gone/);
    cut();
    await assert.rejects(near.ask('double', 1), /the process is gone/);
    await waiting;
    await assert.rejects(near.ask('double', 1), /the process is gone/);
  });
  it('lets by what is not its own', () => {
    for (const message of [null, 'text', { cmd: 'NODE_CLUSTER' }, { line: 'answer', id: 99 }]) createPair().near.hear(message);
  });
});

describe('a worker that ends', () => {
  it('is replaced at once after a long life, and ever later when it ends again and again', () => {
    const backOff = new BackOff();
    assert.deepEqual(
      [70_000, 10, 10, 10, 10].map((lived) => backOff.next(lived)),
      [0, 200, 400, 800, 1600],
    );
    for (let i = 0; i < 20; i++) backOff.next(10);
    assert.equal(backOff.next(10), 30_000);
    assert.equal(backOff.next(61_000), 0);
  });
});

describe('workers: auto', () => {
  const files = (known: Record<string, string>) => (file: string) => {
    const text = known[file.replace('/sys/fs/cgroup/', '')];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  };
  it('is a worker a processor, or what a container may use', () => {
    assert.equal(usableProcessors(files({}), 8), 8);
    assert.equal(usableProcessors(files({ 'cpu.max': 'max 100000\n' }), 8), 8);
    assert.equal(usableProcessors(files({ 'cpu.max': '250000 100000\n' }), 8), 3);
    assert.equal(usableProcessors(files({ 'cpu.max': '50000 100000\n' }), 8), 1);
    assert.equal(usableProcessors(files({ 'cpu.max': '1600000 100000\n' }), 8), 8);
    assert.equal(usableProcessors(files({ 'cpu/cpu.cfs_quota_us': '200000', 'cpu/cpu.cfs_period_us': '100000' }), 8), 2);
    assert.equal(usableProcessors(files({ 'cpu/cpu.cfs_quota_us': '-1', 'cpu/cpu.cfs_period_us': '100000' }), 8), 8);
  });
});
