import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import { Concurrency, type Leave, NeverSent } from '../../src/upstream/concurrency.ts';
import { model, target, toConfig } from './failover-kit.ts';

const boundedBy = (maxConcurrent: number, maxQueue = 100) => {
  const upstream = target('up', { maxConcurrent, maxQueue });
  return { upstream, config: toConfig([model('m', [upstream])]) };
};
const settled = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await Promise.resolve();
};

class Call {
  readonly service: string;
  readonly background: boolean;
  state: 'waiting' | 'running' | 'refused' | 'cancelled' | 'done' = 'waiting';
  error: HermesError | undefined;
  #leave: Leave | undefined;
  #cancel: ((reason: HermesError) => void) | undefined;

  constructor(service: string, background = false) {
    this.service = service;
    this.background = background;
  }
  enter(concurrency: Concurrency, { upstream, config }: ReturnType<typeof boundedBy>, admitted: (call: Call) => void = () => undefined): this {
    const onCancel = (listener: (reason: HermesError) => void) => {
      this.#cancel = listener;
      return () => {
        this.#cancel = undefined;
      };
    };
    const { service, background } = this;
    const entered = concurrency.enter({ config, caller: { service }, background, onCancel, trace: { record: () => undefined } }, upstream);
    const take = (leave: Leave): void => {
      this.#leave = leave;
      this.state = 'running';
      admitted(this);
    };
    if (!(entered instanceof Promise)) take(entered);
    else
      entered.then(take, (error: HermesError) => {
        this.error = error;
        this.state = error.code === 'overloaded' ? 'refused' : 'cancelled';
      });
    return this;
  }
  leave(): void {
    this.state = 'done';
    this.#leave?.();
    this.#leave?.();
  }
  cancel(): void {
    this.#cancel?.(new HermesError('client_closed', 'gone'));
  }
}

describe('the bound of an upstream', () => {
  it('is never passed, starves no service, and forgets who has left, whatever comes', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('enter' as const), service: fc.constantFrom('a', 'a', 'a', 'b', 'c') }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('leave' as const), which: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat() }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 6 }), fc.array(step, { maxLength: 80 }), async (limit, queue, steps) => {
        const concurrency = new Concurrency();
        const bounds = boundedBy(limit, queue);
        const calls: Call[] = [];
        const of = (state: Call['state']): Call[] => calls.filter((call) => call.state === state);
        /** By service that waits: how often each other one went before it. */
        const passed = new Map<string, Map<string, number>>();
        const admitted = ({ service }: Call): void => {
          passed.delete(service);
          for (const waiting of new Set(of('waiting').map((call) => call.service))) {
            const before = passed.get(waiting) ?? new Map<string, number>();
            passed.set(waiting, before.set(service, (before.get(service) ?? 0) + 1));
            if (waiting !== service) assert.ok((before.get(service) ?? 0) <= 1, `${service} went twice while ${waiting} waited`);
          }
        };
        for (const one of steps) {
          if (one.kind === 'enter') {
            const call = new Call(one.service);
            calls.push(call);
            call.enter(concurrency, bounds, admitted);
          } else {
            const among = of(one.kind === 'leave' ? 'running' : 'waiting');
            const call = among[one.which % Math.max(1, among.length)];
            if (one.kind === 'leave') call?.leave();
            else call?.cancel();
          }
          await settled();
          for (const service of passed.keys()) if (!of('waiting').some((call) => call.service === service)) passed.delete(service);
          assert.ok(of('running').length <= limit && of('waiting').length <= queue);
          assert.ok(of('waiting').length === 0 || of('running').length === limit, 'nobody waits beside a free place');
        }
        for (let left = of('running'); left.length > 0; left = of('running')) {
          left[0]?.leave();
          await settled();
        }
        assert.equal(of('waiting').length, 0, 'everybody who stayed has had a turn');
        const last = new Call('z').enter(concurrency, bounds);
        assert.equal(last.state, 'running', 'no place was lost');
      }),
      { numRuns: 150 },
    );
  });
  it('refuses the newest of the longest line when its queue is full, with a time to come back', async () => {
    const concurrency = new Concurrency();
    const bounds = boundedBy(1, 3);
    const burst = ['a', 'a', 'a', 'a', 'a'].map((service) => new Call(service).enter(concurrency, bounds));
    const quiet = new Call('b').enter(concurrency, bounds);
    await settled();
    assert.deepEqual(
      burst.map(({ state }) => state),
      ['running', 'waiting', 'waiting', 'refused', 'refused'],
    );
    assert.equal(quiet.state, 'waiting');
    const { error } = burst[4] as Call;
    assert.ok(error instanceof NeverSent && error.status === 503 && error.retryable && Number(error.headers['retry-after']) >= 1);
    for (const leaving of burst.slice(0, 2)) {
      leaving.leave();
      await settled();
    }
    assert.deepEqual([quiet.state, burst[2]?.state], ['running', 'waiting']);
  });
  it('lets nothing of the background wait, and is gone with the configuration that set it', async () => {
    const concurrency = new Concurrency();
    const bounds = boundedBy(1);
    const [first, shadow, second] = [new Call('a'), new Call('a', true), new Call('a')].map((call) => call.enter(concurrency, bounds));
    await settled();
    assert.deepEqual([first?.state, shadow?.state, second?.state], ['running', 'refused', 'waiting']);
    const third = new Call('a').enter(concurrency, boundedBy(0));
    await settled();
    assert.deepEqual([second?.state, third.state], ['running', 'running']);
  });
});
