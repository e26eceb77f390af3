// Many streams at once, each read to its end; the age of every event is taken as it comes. The plan comes as JSON, the findings are one line of it.
import { agesIn, Connection, type Percentiles, type Plan, percentiles, toBytes } from './raw-client.ts';

export interface StreamsPlan extends Plan {
  streams: number;
  /** They begin one after the other, in this time. */
  rampMs: number;
}
export interface StreamsFindings {
  streams: number;
  /** Open at once. */
  most: number;
  errors: number;
  /** Milliseconds from an upstream's write to the client's read. */
  ages: Percentiles;
}

/** The terminal marker, and what may stand behind it. */
const TAIL = 60;

const plan = JSON.parse(process.argv[2] ?? '') as StreamsPlan;
const bytes = toBytes(plan);
const ages: number[] = [];
let [done, errors, most, open] = [0, 0, 0, 0];

function one(): void {
  const connection = new Connection(plan.port);
  let last = '';
  most = Math.max(most, ++open);
  const over = (status: number): void => {
    open--;
    if (status !== 200 || !last.includes('[DONE]')) errors++;
    connection.close();
    if (++done < plan.streams) return;
    const findings: StreamsFindings = { streams: done, most, errors, ages: percentiles(ages) };
    process.stdout.write(`${JSON.stringify(findings)}\n`);
    process.exit(0);
  };
  connection.send(bytes, over, (part) => {
    for (const age of agesIn(part)) ages.push(age);
    last = `${last}${part.toString('latin1', Math.max(0, part.length - TAIL))}`.slice(-TAIL);
  });
}
for (let number = 0; number < plan.streams; number++) setTimeout(one, (number * plan.rampMs) / plan.streams);
