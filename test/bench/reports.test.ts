import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { writeHeapSnapshot } from 'node:v8';
import { toChart } from '../../bench/parts/chart.ts';
import { parseCommandLine } from '../../bench/parts/command-line.ts';
import { type CpuProfile, toFrames, toFunctions } from '../../bench/parts/cpu-profile.ts';
import { toFlameGraph } from '../../bench/parts/flame-graph.ts';
import { compareSnapshots } from '../../bench/parts/heap-growth.ts';
import { middle, ratio } from '../../bench/parts/rounds.ts';
import { temporaryFolder } from '../services.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

const call = (functionName: string, url = '', lineNumber = -1): CpuProfile['nodes'][number]['callFrame'] => ({
  functionName,
  url,
  lineNumber,
  columnNumber: 0,
});

describe('what the bench tells', () => {
  it('is the median of ratios within a round', () => {
    const [first, second] = [[10, 20, 30].map((value) => ({ value })), [5, 30, 15].map((value) => ({ value }))];
    assert.equal(
      middle(first, ({ value }) => value),
      20,
    );
    assert.equal(
      ratio(second, first, ({ value }) => value),
      0.5,
    );
  });
  it('is drawn with every contestant, and what is beyond the edge is marked', () => {
    const svg = toChart(
      [
        {
          title: 'a < b',
          bars: [
            { label: 'bare proxy', ratio: 1 },
            { label: 'hermes', ratio: 0.7 },
            { label: 'nginx', ratio: 9 },
          ],
        },
      ],
      'caption',
    );
    assert.match(svg, /a &lt; b/);
    assert.equal(svg.match(/class="(ours|theirs)"/g)?.length, 3);
    assert.match(svg, />0\.70</);
    assert.match(svg, />9\.00 →</);
  });
  it('is asked for by words, and what is no such word is told', () => {
    assert.deepEqual(parseCommandLine(['--only', 'json,sse', '--rounds', '2']).only, ['json', 'sse']);
    assert.equal(parseCommandLine(['--quick']).rounds, 3);
    assert.equal(parseCommandLine(['--soak', '90s']).soakMinutes, 1.5);
    for (const wrong of [['--fast'], ['--soak', 'long'], ['--rounds', '0']]) assert.throws(() => parseCommandLine(wrong), /npm run bench \[-- OPTIONS\]/);
  });
});

describe('a CPU profile', () => {
  const profile: CpuProfile = {
    nodes: [
      { id: 1, callFrame: call('(root)'), children: [2, 3, 4] },
      { id: 2, callFrame: call('(idle)') },
      { id: 3, callFrame: call('serve', 'file:///home/hermes/dist/src/app.js', 11), children: [5] },
      { id: 4, callFrame: call('(garbage collector)') },
      { id: 5, callFrame: call('serve', 'file:///home/hermes/dist/src/app.js', 11), children: [6] },
      { id: 6, callFrame: call('parse', 'file:///home/hermes/node_modules/undici/lib/api.js', 4) },
    ],
    samples: [2, 3, 5, 6, 6, 4],
    timeDeltas: [1000, 10, 20, 30, 40, 100],
  };
  it('tells of every function its own time, and with what it called, without the waiting', () => {
    const tree = toFrames(profile, '/home/hermes/');
    assert.equal(tree.total, 200);
    assert.deepEqual(toFunctions(tree), [
      { name: '(garbage collector)', place: '', self: 100, total: 100 },
      { name: 'parse', place: 'undici/lib/api.js:5', self: 70, total: 70 },
      { name: 'serve', place: 'src/app.js:12', self: 30, total: 100 },
    ]);
  });
  it('of a real program is a flame graph with its functions', async () => {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: 100 });
    await session.post('Profiler.start');
    const busyHere = (until: number): void => {
      while (performance.now() < until) JSON.parse('{"a":[1,2,3]}');
    };
    busyHere(performance.now() + 300);
    const { profile: taken } = await session.post('Profiler.stop');
    session.disconnect();
    const tree = toFrames(taken as CpuProfile, root);
    // Whether by its own name or that of whom it was compiled into.
    const found = toFunctions(tree).find(({ place }) => place.startsWith('test/bench/reports.test.ts:'));
    assert.ok(found && found.total > tree.total / 4, JSON.stringify(found));
    const page = toFlameGraph(tree, 'a title & more');
    assert.match(page, /a title &amp; more/);
    assert.match(page, /title="[^"]* \(test\/bench\/reports\.test\.ts:\d+\): [\d.]+ %, itself/);
    assert.doesNotMatch(page, /src=|href=|@import|url\(/);
  });
});

describe('two heap snapshots', () => {
  it('show what grew between them', () => {
    class KeptByMistake {
      readonly payload = new Array<number>(100).fill(1);
    }
    const folder = temporaryFolder();
    const before = writeHeapSnapshot(join(folder, 'before.heapsnapshot'));
    const kept = Array.from({ length: 5000 }, () => new KeptByMistake());
    const after = writeHeapSnapshot(join(folder, 'after.heapsnapshot'));
    assert.equal(kept.length, 5000);
    const told = compareSnapshots(before, after).join('\n');
    assert.match(told, /\| object KeptByMistake \| 5000 \|/);
  });
});
