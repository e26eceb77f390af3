// npx tsx bench/shapes.ts [json|sse|anthropic|session|session-sse]: hidden classes that the built gateway makes for every request, and where.
// In steady state there are none: an object with a class of its own costs some 0.7 µs, and makes every place that reads it slower. In Node 20
// each `{ ...object, member }` makes one when `member` is new to the object; a member before the spread, or Object.assign, does not.
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Fleet } from './parts/fleet.ts';
import { fillSessions, namedLoad } from './parts/loads.ts';
import { table } from './parts/rounds.ts';
import { runMain } from './parts/run-main.ts';
import { scratch } from './parts/servers.ts';
import { measure } from './parts/wrk.ts';

const WARM_UP_SECONDS = 6;
const SECONDS = 2;
const MOST_BYTES = 256 * 1024 ** 2;
/** Fewer a request than this are not made for each. */
const LEAST = 0.1;

function readFrom(file: string, from: number): string {
  const bytes = Buffer.alloc(Math.min(statSync(file).size - from, MOST_BYTES));
  const descriptor = openSync(file, 'r');
  readSync(descriptor, bytes, 0, bytes.length, from);
  closeSync(descriptor);
  return bytes.toString('latin1');
}

/** V8 logs each as `map,KIND,time,from,to,script,line,column,why,name`. */
function countShapes(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of log.split('\n')) {
    if (!line.startsWith('map,')) continue;
    const [, kind, , , , , row, column, ...what] = line.split(',');
    const shape = `${kind} ${what.join(' ')} at ${row}:${column}`;
    counts.set(shape, (counts.get(shape) ?? 0) + 1);
  }
  return counts;
}

async function main(): Promise<void> {
  const name = process.argv[2] ?? 'json';
  const { sent, session } = namedLoad(name);
  const log = join(scratch(), 'shapes');
  const fleet = await Fleet.start();
  const server = await fleet.hermes({ flags: ['--log-maps', '--no-log-maps-details', `--logfile=${log}`, '--no-logfile-per-isolate'] });
  if (session) await fillSessions(server);
  await measure(server, sent, WARM_UP_SECONDS);
  const from = statSync(log).size;
  const { requestsPerSecond } = await measure(server, sent, SECONDS);
  const requests = requestsPerSecond * SECONDS;
  const rows = [...countShapes(readFrom(log, from))]
    .map(([shape, count]): [string, number] => [shape, count / requests])
    .filter(([, each]) => each > LEAST)
    .sort(([, a], [, b]) => b - a);
  const shown = rows.map(([shape, each]) => [shape, each.toFixed(2)]);
  process.stdout.write(
    `${name}: ${Math.round(requests)} requests\n${shown.length > 0 ? table(['shape (line and column of the built file)', 'a request'], shown).join('\n') : 'none'}\n`,
  );
}

await runMain(main);
