import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ShareWatch } from '../../src/routing/share-watch.ts';
import { asking, config, routing, rule } from './fixture.ts';

const rules = [rule('order', { keywords: ['order'] }), rule('everything', '.*', { model: 'm_z' })];

describe('statistics of the rules', () => {
  it('tell hits, shares and the last hit of every rule; named models are apart', async () => {
    let now = Date.UTC(2026, 10, 30, 12);
    const { engine, room, config: current } = routing([...rules.slice(0, 1), rule('idle', { keywords: ['idle'] }), ...rules.slice(1)], {}, { now: () => now });
    for (const text of ['order 1', 'order 2', 'order 3', 'hello']) {
      now += 1_000;
      await engine.decide(asking(text));
    }
    await engine.decide(asking({ messages: [], request: { model: 'm_a' } }));
    const read = room.statistics(current);
    assert.deepEqual(read.rules, [
      { rule: 'order', hits: 3, share: 0.75, last_hit: '2026-11-30T12:00:03.000Z' },
      { rule: 'idle', hits: 0, share: 0, last_hit: null },
      { rule: 'everything', hits: 1, share: 0.25, last_hit: '2026-11-30T12:00:04.000Z' },
      { rule: 'default', hits: 0, share: 0, last_hit: null },
      { rule: 'none', hits: 1, share: null, last_hit: '2026-11-30T12:00:04.000Z' },
    ]);
    assert.deepEqual([read.decisions, read.default_share, read.usual_default_share, read.drifting, read.rollout], [4, 0.25, null, false, null]);
  });

  it('warn once when more than usual falls to a catch-all, whatever its name, and again only after it was over', async () => {
    const { engine, room, seen, config: current } = routing(rules);
    const ask = async (count: number, oneIn: number) => {
      for (let index = 0; index < count; index++) await engine.decide(asking(index % oneIn === 0 ? 'something new' : 'order'));
    };
    const warned = () => seen.warnings.filter((warning) => /more than usual falls to the default/.test(warning)).length;
    await ask(1_000, 10);
    assert.equal(warned(), 0);
    assert.deepEqual([room.statistics(current).default_share, room.statistics(current).usual_default_share], [0.1, 0.1]);
    await ask(600, 2);
    assert.deepEqual([warned(), room.statistics(current).drifting], [1, true]);
    await ask(400, 10);
    assert.deepEqual([warned(), room.statistics(current).drifting], [1, false]);
    await ask(2_000, 10);
    await ask(400, 2);
    assert.equal(warned(), 2);
  });

  it('begin anew when the rules change, and not when something else does', async () => {
    const { room, config: current } = routing(rules);
    for (let index = 0; index < 500; index++) await room.compile(current).decide(asking('hello'));
    const same = config(rules);
    room.compile(same);
    assert.equal(room.statistics(same).usual_default_share, 1);
    const changed = config(rules.slice(1));
    room.compile(changed);
    assert.deepEqual([room.statistics(changed).default_share, room.statistics(changed).usual_default_share], [null, null]);
  });
});

describe('a share', () => {
  it('is that of the newest 200, the usual that of the 2,000 before', () => {
    const watch = new ShareWatch();
    const history: boolean[] = [];
    for (let index = 0; index < 6_000; index++) {
      const caught = (index * 7919) % 13 < 2 + (index % 700 > 600 ? 1 : 0);
      history.push(caught);
      watch.add(caught);
    }
    const mean = (list: boolean[]) => list.filter(Boolean).length / list.length;
    assert.equal(watch.drifting, false);
    assert.equal(watch.share, mean(history.slice(-200)));
    assert.equal(watch.usual, mean(history.slice(-2_200, -200)));
  });

  it('does not drift by chance: 3 points more, or half as much again of next to nothing', () => {
    for (const [usual, now] of [
      [20, 25],
      [1, 3],
    ] as const) {
      const watch = new ShareWatch();
      const changes = Array.from({ length: 3_000 }, (_, index) => watch.add((index * 37) % 100 < (index < 2_000 ? usual : now)));
      assert.ok(changes.every((change) => change === undefined));
    }
  });
});
