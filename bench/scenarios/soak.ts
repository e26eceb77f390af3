import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandLine } from '../parts/command-line.ts';
import type { Fleet } from '../parts/fleet.ts';
import { compareSnapshots } from '../parts/heap-growth.ts';
import { chatBody, load } from '../parts/loads.ts';
import { rssMb } from '../parts/process-usage.ts';
import { table } from '../parts/rounds.ts';
import type { Section } from '../parts/scenario.ts';
import { root, type Server } from '../parts/servers.ts';
import { measure } from '../parts/wrk.ts';

/** Until so many requests, a process still fills what it keeps: caches, rings, pools. */
const SETTLED = 100_000;
const ROUND_SECONDS = 5;
const IDLE_MS = 3000;
const OUT = join(root, '.bench');

/** One process under load for a long time, by turns whole answers and streams: what it keeps of a request shows. */
export async function soak(fleet: Fleet, settings: CommandLine): Promise<Section> {
  const flags = settings.snapshots ? ['--heapsnapshot-signal=SIGUSR2', `--diagnostic-dir=${OUT}`] : [];
  if (settings.snapshots) mkdirSync(OUT, { recursive: true });
  const server = await fleet.hermes({ flags, name: 'hermes, soak' });
  const loads = [load(chatBody()), load(chatBody({ model: 'stream_model', stream: true }))];
  const end = performance.now() + (settings.soakMinutes ?? 10) * 60_000;
  let [requests, next] = [0, SETTLED];
  const samples: { requests: number; busy: number }[] = [];
  const snapshots: string[] = [];
  for (let turn = 0; performance.now() < end; turn++) {
    const { requestsPerSecond, errors, rssMb: rss } = await measure(server, loads[turn % loads.length] as (typeof loads)[0], ROUND_SECONDS);
    if (errors > 0) throw new Error(`${errors} errors after ${requests} requests`);
    requests += requestsPerSecond * ROUND_SECONDS;
    process.stderr.write(`${Math.round(requests)} requests, ${rss.toFixed(0)} MB\n`);
    if (requests < next) continue;
    samples.push({ requests, busy: rss });
    next = requests + SETTLED;
    if (settings.snapshots && snapshots.length === 0) snapshots.push(await snapshot(server));
  }
  if (settings.snapshots) snapshots.push(await snapshot(server));
  await sleep(IDLE_MS);
  const [first, last] = [samples[0], samples.at(-1)];
  const rows = samples.map((sample) => [Math.round(sample.requests).toLocaleString('en'), sample.busy.toFixed(0)]);
  const growth =
    first && last && last !== first
      ? `RSS after ${Math.round(last.requests).toLocaleString('en')} requests is ${(last.busy / first.busy).toFixed(2)} of that after ${Math.round(first.requests).toLocaleString('en')}; ${rssMb(server.pid).toFixed(0)} MB ${IDLE_MS / 1000} s later.`
      : `Too short for a comparison: ${Math.round(requests)} requests.`;
  const grown =
    snapshots.length === 2 ? ['', 'RSS holds what the snapshots themselves took.', '', ...compareSnapshots(snapshots[0] ?? '', snapshots[1] ?? '')] : [];
  return { title: 'Memory under a long load', lines: [growth, '', ...table(['requests', 'RSS MB'], rows), ...grown] };
}

/** The file that the process has written; the process stands still for it. */
async function snapshot(server: Server): Promise<string> {
  const before = new Set(files());
  process.kill(server.pid, 'SIGUSR2');
  for (let waited = 0; waited < 60_000; waited += 200) {
    await sleep(200);
    const made = files().find((file) => !before.has(file));
    if (made === undefined) continue;
    // It is whole when the process answers again.
    await fetch(`http://127.0.0.1:${server.port}/healthz`);
    return join(OUT, made);
  }
  throw new Error('no heap snapshot was written');
}
function files(): string[] {
  return readdirSync(OUT).filter((file) => file.endsWith('.heapsnapshot'));
}
