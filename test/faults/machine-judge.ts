import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '../app-kit.ts';
import { USAGE } from '../fake-upstream.ts';
import type { Instance } from '../operations/instance.ts';
import type { Refunds, Talk } from './machine-run.ts';
import { ask, HEADERS, type Stretch, type World } from './machine-world.ts';

/** The books are written every second where PostgreSQL keeps them; twice that on a busy machine. */
const BATCH_MS = 2000;
/** Connections that are kept for the next call, to everybody: more than these would grow with the requests. */
const KEPT_SOCKETS = 90;
const STOP_MS = 20_000;

/** Everything that must hold, whatever has happened. */
export async function judge(world: World, sessions: readonly Talk[], refunds: readonly Refunds[]): Promise<void> {
  for (const session of sessions) await judgeSession(world, session);
  judgeRefunds(
    world,
    refunds.flatMap(({ orders }) => orders),
    new Set(refunds.flatMap(({ told }) => told)),
  );
  await judgeBooks(world);
  await judgeRest(world);
}

async function admin<T>({ instances }: World, path: string): Promise<T> {
  return (await (await fetch(instances[0].base + path, { headers: HEADERS })).json()) as T;
}

async function judgeSession(world: World, session: Talk): Promise<void> {
  const { report } = world;
  report.acknowledged += session.sure.length;
  report.failed += session.maybe.size;
  const { messages = [] } = await admin<{ messages?: { role: string; content: string; superseded?: boolean }[] }>(
    world,
    `/admin/sessions/${session.id}?project=default`,
  );
  const stored = messages.filter(({ role, superseded }) => role === 'user' && !superseded).map(({ content }) => content);
  const lost = session.sure.filter((text) => !stored.includes(text));
  const doubled = stored.filter((text, index) => stored.indexOf(text) !== index);
  const unknown = stored.filter((text) => !session.sure.includes(text) && !session.maybe.has(text));
  if (lost.length + doubled.length + unknown.length > 0) report.wrong.push(`${session.id}: lost ${lost}; doubled ${doubled}; unknown ${unknown}`);
  const order = stored.map((text) => Number(text.split(' ')[1]));
  if (order.some((turn, index) => index > 0 && turn < (order[index - 1] ?? 0))) report.wrong.push(`${session.id}: out of order ${order}`);
  // No lock is left: the next turn is served.
  const began = performance.now();
  const next = await ask(world, { session_id: session.id, messages: user('turn 99999') });
  if (next?.status !== 200 || performance.now() - began > 10_000)
    report.wrong.push(`${session.id}: the next turn gives ${next?.status} ${next?.text.slice(0, 100)}`);
}

function judgeRefunds({ report, paid }: World, orders: readonly string[], told: ReadonlySet<string>): void {
  report.refunds = orders.length;
  report.told = told.size;
  for (const order of orders) {
    const ids = paid.get(order)?.size ?? 0;
    if (ids > 1 || (ids === 0 && !told.has(order))) report.wrong.push(`${order} was paid under ${ids} ids`);
  }
}

/**
 * Every answer that the upstream gave whole is booked once, with its tokens; but those that a fault kept from hermes, or that a
 * `kill -9` took along before their batch was written.
 */
async function judgeBooks(world: World): Promise<void> {
  const { report, upstream, answers } = world;
  await upstream
    .until(() => upstream.calls.every(({ closedAt }) => closedAt !== undefined), 5000)
    .catch(() => report.wrong.push('upstream calls that are still open'));
  const unsure = answers.filter((answer) => mayBeLost(world, answer));
  let booked = { calls: 0, failed_calls: 0, estimated_calls: 0, input_tokens: 0, output_tokens: 0 };
  // The batch of this second is on its way, and after an outage the pause between two tries may be longer.
  for (let tries = 0; tries < 20; tries++) {
    await sleep(500);
    // A clock that was stepped books in another hour.
    booked = (await admin<{ total: typeof booked }>(world, '/admin/costs?from=2000-01-01')).total;
    if (booked.calls - booked.failed_calls >= answers.length) break;
    if (tries >= 4 && booked.calls - booked.failed_calls >= answers.length - unsure.length) break;
  }
  const good = booked.calls - booked.failed_calls;
  Object.assign(report, { upstreamCalls: upstream.calls.length, bookedCalls: booked.calls, answered: answers.length, unsure: unsure.length });
  Object.assign(report, { bookedAnswers: good, estimated: booked.estimated_calls });
  const least = answers.length - unsure.length;
  if (good < least || good > answers.length + booked.estimated_calls)
    report.wrong.push(`booked ${good} answers; the upstream gave ${answers.length}, of which ${unsure.length} may have got lost`);
  if (booked.estimated_calls === 0) {
    const tokens = [good * USAGE.prompt_tokens, good * USAGE.completion_tokens];
    if (booked.input_tokens !== tokens[0] || booked.output_tokens !== tokens[1])
      report.wrong.push(`booked ${booked.input_tokens} and ${booked.output_tokens} tokens; they were ${tokens}`);
  }
}
/** On its way, or in a process that was killed before it had written its books: those of this second, or older ones while the store was away. */
function mayBeLost({ trouble }: World, answer: Stretch): boolean {
  const touches = ({ from, to }: Stretch): boolean => answer.to >= from && answer.from <= to;
  const unwritten = trouble.process.map(({ from, to }) => {
    const before = trouble.store.filter((away) => away.from <= to && from - away.to < BATCH_MS + 2 * (away.to - away.from));
    return { from: Math.min(from, ...before.map((away) => away.from)) - BATCH_MS, to };
  });
  return [...unwritten, ...trouble.way.map(({ from, to }) => ({ from, to: to + 200 }))].some(touches);
}

async function judgeRest({ report, instances, upstream }: World): Promise<void> {
  for (const instance of instances) {
    const text = await (await fetch(`${instance.base}/metrics`)).text();
    if (!/^hermes_requests_in_flight 0$/m.test(text)) report.wrong.push('requests in flight after the end');
    if (/uncaught|unhandled|TypeError|RangeError/i.test(instance.log()))
      report.wrong.push(`in the log: ${/.*(uncaught|unhandled|TypeError|RangeError).*/i.exec(instance.log())?.[0].slice(0, 200)}`);
    const sockets = openSockets(instance);
    report.sockets.push(sockets);
    if (sockets > KEPT_SOCKETS) report.wrong.push(`${sockets} sockets are open`);
  }
  if (upstream.violations.length > 0) report.wrong.push(`violations: ${upstream.violations.slice(0, 2)}`);
  for (const instance of instances) {
    instance.kill('SIGTERM');
    const code = await Promise.race([instance.exited, sleep(STOP_MS, 'it is still there', { ref: false })]);
    if (code !== 0) report.wrong.push(`a process ended by SIGTERM: ${code}; ${instance.log().slice(-300)}`);
  }
}
function openSockets({ process: child }: Instance): number {
  const folder = `/proc/${child.pid}/fd`;
  return readdirSync(folder).filter((name) => {
    try {
      return readlinkSync(`${folder}/${name}`).startsWith('socket:');
    } catch {
      return false;
    }
  }).length;
}
