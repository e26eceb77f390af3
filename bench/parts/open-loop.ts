// A steady rate of requests that waits for nobody: its plan comes as JSON, its findings go out as one line of JSON. A request's time begins
// when it is written, and whether the earlier ones are answered makes no difference to when that is.
import { agesIn, Connection, microseconds, type Percentiles, type Plan, percentiles, toBytes } from './raw-client.ts';

export interface RatePlan extends Plan {
  /** Requests a second. */
  rate: number;
  seconds: number;
  /** Look for the times at which events were written. */
  stamps: boolean;
}
export interface RateFindings {
  requests: number;
  errors: number;
  ms: Percentiles;
  /** How late the generator itself was. */
  late: Percentiles;
  /** How old the events were when they came. */
  ages: Percentiles;
}

const HEAD_START_MICROS = 20_000;
const PATIENCE_MS = 10_000;

const plan = JSON.parse(process.argv[2] ?? '') as RatePlan;
const bytes = toBytes(plan);
const total = Math.round(plan.rate * plan.seconds);
const every = 1e6 / plan.rate;
const began = microseconds() + HEAD_START_MICROS;
const all = new Set<Connection>();
const idle: Connection[] = [];
const took: number[] = [];
const ages: number[] = [];
const late: number[] = [];
let [sent, done, errors] = [0, 0, 0];

function one(): void {
  const connection = idle.pop() ?? new Connection(plan.port);
  all.add(connection);
  const at = microseconds();
  late.push((at - began - sent++ * every) / 1000);
  const over = (status: number): void => {
    if (status === 200) took.push((microseconds() - at) / 1000);
    else errors++;
    idle.push(connection);
    if (++done === total) finish();
  };
  connection.send(bytes, over, plan.stamps ? (part) => ages.push(...agesIn(part)) : undefined);
}

function tick(): void {
  const due = Math.min(total, (microseconds() - began) / every);
  while (sent < due) one();
  if (sent < total) setTimeout(tick, 0);
}

function finish(): void {
  const findings: RateFindings = { requests: sent, errors: errors + (sent - done), ms: percentiles(took), late: percentiles(late), ages: percentiles(ages) };
  process.stdout.write(`${JSON.stringify(findings)}\n`);
  for (const connection of all) connection.close();
  process.exit(0);
}

setTimeout(tick, 0);
setTimeout(finish, plan.seconds * 1000 + PATIENCE_MS);
