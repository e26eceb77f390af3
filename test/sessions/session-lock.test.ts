import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Exchange } from '../../src/contracts/exchange.ts';
import { SessionLock, type SessionLockDeps } from '../../src/sessions/session-lock.ts';
import { toSessionName } from '../../src/sessions/session-name.ts';
import { makeConfig } from '../config/make-config.ts';
import { environment, recordLog } from '../stores/fixture.ts';
import { sharedHot } from '../tools/tools-kit.ts';

test('a turn that is cancelled while it asks for a lease leaves, and frees its place', async () => {
  const left = new HermesError('client_closed', 'The client closed the connection.');
  let cancelled: HermesError | undefined;
  const held = sharedHot();
  const hot = Object.assign(sharedHot(), {
    acquire: async (): Promise<undefined> => {
      cancelled = left;
      return undefined;
    },
  });
  const deps: SessionLockDeps = { hot, log: recordLog(), environment };
  const exchange = {
    config: makeConfig(),
    get cancelled() {
      return cancelled;
    },
    // As an exchange does that is cancelled already.
    onCancel(listener: (reason: HermesError) => void) {
      if (cancelled) listener(cancelled);
      return () => undefined;
    },
  } satisfies Partial<Exchange>;
  const lock = new SessionLock(deps);
  const name = toSessionName('p', 's');
  await assert.rejects(lock.enter(name, exchange as never), (thrown) => thrown === left);
  cancelled = undefined;
  hot.acquire = held.acquire as never;
  (await lock.enter(name, exchange as never))();
});
