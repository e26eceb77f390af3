/**
 * The long form of test/chaos/killed-turns.test.ts: `npx tsx bench/turns.ts [sqljs|postgres] [SESSIONS] [TURNS] [KILLS]`. By default 10,000
 * turns over 500 sessions, with the gateway killed twenty times. Ends with 1 when anything acknowledged is missing or doubled.
 */
import { killedTurns } from '../test/chaos/killed-turns.ts';
import { startPostgres } from '../test/services.ts';

const [engine = 'sqljs', sessions = '500', turns = '20', kills = '20'] = process.argv.slice(2);
const postgres = engine === 'postgres' ? await startPostgres() : undefined;
const env = postgres ? { DATABASE_URL: await postgres.createDatabase() } : {};
const began = performance.now();
const told = await killedTurns({ sessions: Number(sessions), turns: Number(turns), kills: Number(kills), atOnce: 32, lifeMs: 2500, seed: Date.now(), env });
await postgres?.stop();
const { faults, ...counts } = told;
process.stdout.write(`${JSON.stringify({ engine, ...counts, faults: faults.length, seconds: Math.round((performance.now() - began) / 1000) })}\n`);
for (const fault of faults) process.stdout.write(`${fault}\n`);
process.exitCode = faults.length > 0 ? 1 : 0;
