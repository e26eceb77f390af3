/**
 * Durable turns a second of the embedded database: 200 sessions write turns of two messages at once, each waiting for its fsync.
 * `npx tsx bench/stores.ts [turns] [folder]`. The folder decides what an fsync costs: take one on the disk that will be used.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log, Metrics } from '../src/contracts/telemetry.ts';
import createSqljsStore from '../src/stores/cold/sqljs.ts';

const SESSIONS = 200;
const [turns = '20000', parent = tmpdir()] = process.argv.slice(2);
const folder = mkdtempSync(join(parent, 'hermes-bench-'));

function fsyncMs(): number {
  const descriptor = openSync(join(folder, 'fsync'), 'w');
  const began = performance.now();
  for (let i = 0; i < 100; i++) {
    writeSync(descriptor, 'x'.repeat(1000));
    fdatasyncSync(descriptor);
  }
  closeSync(descriptor);
  return (performance.now() - began) / 100;
}

const log: Log = {
  debug() {},
  info() {},
  warn() {},
  error: (fields, message) => process.stderr.write(`${message} ${JSON.stringify(fields)}\n`),
  child: () => log,
};
const nothing = { inc() {}, set() {}, observe() {} };
const metrics: Metrics = { counter: () => nothing, gauge: () => nothing, histogram: () => nothing, text: async () => '', contentType: '' };
const environment = { now: () => Date.now(), uuid: () => crypto.randomUUID(), random: () => Math.random() };

const opening = performance.now();
const store = createSqljsStore({ url: `sqlite:///${join(folder, 'hermes.db')}`, keyPrefix: '', log, metrics, environment });
await store.open();
const openMs = performance.now() - opening;

const waits: number[] = [];
const answer = 'It left the warehouse this morning and is with the courier now. '.repeat(5);
async function talk(session: string): Promise<void> {
  for (let version = 0; version < Number(turns) / SESSIONS; version++) {
    const began = performance.now();
    const messages = [
      { message: { role: 'user' as const, content: `where is my order ${version}?` }, tokens: 8 },
      { message: { role: 'assistant' as const, content: answer }, tokens: 65 },
    ];
    const requestId = environment.uuid();
    await store.appendTurn({ project: 'shop', session, at: Date.now(), requestId, baseVersion: version, system: [], messages, model: 'gpt-4o' });
    waits.push(performance.now() - began);
  }
}
const began = performance.now();
const cpu = process.cpuUsage();
await Promise.all(Array.from({ length: SESSIONS }, (_, i) => talk(`s${i}`)));
const seconds = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage(cpu);
waits.sort((a, b) => a - b);
const report = {
  turns_per_second: Math.round(waits.length / seconds),
  cpu_microseconds_a_turn: Math.round((user + system) / waits.length),
  wait_ms: { p50: waits[waits.length >> 1], p99: waits[Math.floor(waits.length * 0.99)] },
  one_fsync_ms: fsyncMs(),
  open_ms: openMs,
};
process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
await store.close();
rmSync(folder, { recursive: true, force: true });
