import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '../app-kit.ts';
import { FAULTS, planFaults } from './machine-faults.ts';
import { judge } from './machine-judge.ts';
import { ask, buildWorld, type MachineReport, type World } from './machine-world.ts';
import { createRandom } from './random.ts';

export interface Talk {
  id: string;
  /** Turns whose answer was seen to its end, and those of which nobody knows. */
  sure: string[];
  maybe: Set<string>;
}
export interface Refunds {
  orders: string[];
  /** Those whose tool call failed, and the model was told so. */
  told: string[];
}
const REFUND_MS = 45_000;
const FAULT_MS = 90_000;

async function talk(world: World, session: Talk, going: () => boolean): Promise<void> {
  for (let turn = 0; going(); turn++) {
    const text = `turn ${turn}`;
    const answer = await ask(world, { session_id: session.id, messages: user(text), stream: turn % 2 === 0 });
    if (answer?.status === 200 && !answer.text.includes('"error"')) session.sure.push(text);
    else session.maybe.add(text);
    await sleep(20);
  }
}
/** A client that repeats what it is not sure of, under the same name. */
async function refund(world: World, mine: Refunds, going: () => boolean): Promise<void> {
  while (going()) {
    const order = `o-${randomUUID()}`;
    mine.orders.push(order);
    const tries: string[] = [];
    for (const until = performance.now() + REFUND_MS; ; await sleep(100)) {
      const asked = performance.now();
      const answer = await ask(world, { request_id: order, messages: user(`refund ${order}`), tools: ['refund'] });
      tries.push(`${answer?.status ?? 'none'} after ${Math.round(performance.now() - asked)} ms`);
      if (answer?.status === 200) {
        // Not made (no store could take the claim), or of unknown outcome (the tool did not answer): the model was told so.
        if (/"status":"(error|timeout|unknown|unavailable)"/.test(answer.text)) mine.told.push(order);
        break;
      }
      if (performance.now() < until) continue;
      world.report.wrong.push(`${order} did not succeed in ${REFUND_MS} ms: ${tries.slice(-20).join(', ')} ${answer?.text.slice(0, 200)}`);
      break;
    }
    await sleep(60);
  }
}

/** A fault that does not end is told by its name. */
async function inTime(name: string, fault: Promise<void> | undefined): Promise<void> {
  const late = sleep(FAULT_MS, undefined, { ref: false }).then(() => Promise.reject(new Error(`${name} did not end in ${FAULT_MS} ms`)));
  await Promise.race([fault, late]);
}

export interface MachineRun {
  seed: number;
  faults: number;
  clients: number;
  /** Hears of each step before it is taken. */
  tell?: (step: string) => void;
}

/** Clients of two instances that share Redis and PostgreSQL, while one after the other fails. Then everything is counted. */
export async function runMachineFaults({ seed, faults, clients, tell }: MachineRun): Promise<MachineReport> {
  const world = await buildWorld(seed);
  let going = true;
  const sessions = Array.from({ length: clients }, (_, index): Talk => ({ id: `s${index}-${randomUUID()}`, sure: [], maybe: new Set() }));
  const refunds = Array.from({ length: clients }, (): Refunds => ({ orders: [], told: [] }));
  try {
    const running = [...sessions.map((session) => talk(world, session, () => going)), ...refunds.map((mine) => refund(world, mine, () => going))];
    await sleep(500);
    for (const name of planFaults(world, createRandom(seed), faults)) {
      tell?.(name);
      world.report.faults[name] = (world.report.faults[name] ?? 0) + 1;
      await inTime(name, FAULTS[name]?.run(world));
      for (const { process: child, log } of world.instances)
        if (child.exitCode !== null || child.signalCode !== null) world.report.wrong.push(`${name} ended a process: ${log().slice(-300)}`);
      await sleep(300 + world.random.below(500));
    }
    tell?.('calm');
    world.calm = true;
    await sleep(1500);
    going = false;
    await Promise.all(running);
    tell?.('judging');
    await judge(world, sessions, refunds);
    return world.report;
  } finally {
    await world.close();
  }
}
