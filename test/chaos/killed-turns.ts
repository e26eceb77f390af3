import { setTimeout as sleep } from 'node:timers/promises';
import { type Gateway, startGateway } from '../process-kit.ts';
import { seeded } from './ills.ts';

export interface KilledTurnsOptions {
  env?: Record<string, string>;
  sessions: number;
  turns: number;
  atOnce: number;
  kills: number;
  /** At most so long after a start the process is killed. */
  lifeMs: number;
  seed: number;
}
export interface KilledTurns {
  turns: number;
  acknowledged: number;
  /** Tries that a kill broke off. */
  broken: number;
  kills: number;
  /** Whatever is not as promised, in words. */
  faults: string[];
}

/**
 * Turns in many sessions while the gateway is killed with SIGKILL at random moments and started again. Turns of every other
 * session have a request id, and are tried until they are acknowledged: each has to be there once, in order. The others are tried
 * once: what was acknowledged has to be there, what was not may be.
 */
export async function killedTurns(options: KilledTurnsOptions): Promise<KilledTurns> {
  const { env = {}, sessions, turns, atOnce, kills, lifeMs, seed } = options;
  const gateway = await startGateway({ models: [{ id: 'm', provider: 'simulator' }], session: { max_history_messages: 10 } }, env);
  const random = seeded(seed);
  const acknowledged = Array.from({ length: sessions }, () => new Set<number>());
  const told: KilledTurns = { turns: 0, acknowledged: 0, broken: 0, kills: 0, faults: [] };
  let next = 0;
  let working = true;
  const worker = async (): Promise<void> => {
    for (let session = next++; session < sessions; session = next++) {
      for (let turn = 0; turn < turns; turn++) {
        told.turns++;
        let done = await attempt(gateway, session, turn);
        while (!done && isKeyed(session)) {
          told.broken++;
          await sleep(50);
          done = await attempt(gateway, session, turn);
        }
        if (done) acknowledged[session]?.add(turn);
        else {
          told.broken++;
          await sleep(50);
        }
      }
    }
  };
  const killer = async (): Promise<void> => {
    while (working && told.kills < kills) {
      await sleep(50 + random() * lifeMs);
      if (!working) return;
      told.kills++;
      await gateway.kill();
      await gateway.start();
    }
  };
  const killing = killer();
  await Promise.all(Array.from({ length: atOnce }, worker));
  working = false;
  await killing;
  // What is there after the last crash, from the disk.
  await gateway.kill();
  await gateway.start();
  for (let session = 0; session < sessions; session++) {
    const done = acknowledged[session] ?? new Set();
    told.acknowledged += done.size;
    const fault = faultOf(await gateway.messages(`s${session}`), session, turns, done);
    if (fault) told.faults.push(`session ${session}: ${fault}`);
  }
  await gateway.stop();
  return told;
}

const isKeyed = (session: number): boolean => session % 2 === 0;
const nameOf = (session: number, turn: number): string => `session ${session} turn ${turn}`;

/** True: the client has seen the end of the answer. */
async function attempt(gateway: Gateway, session: number, turn: number): Promise<boolean> {
  const name = nameOf(session, turn);
  const stream = turn % 2 === 0;
  const messages = [{ role: 'user', content: `[[say re: ${name}]] ${name}` }];
  const id = isKeyed(session) ? { request_id: `${session}-${turn}` } : {};
  try {
    const response = await gateway.post({ session_id: `s${session}`, stream, messages, ...id }, AbortSignal.timeout(20_000));
    const text = await response.text();
    return response.status === 200 && (stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}'));
  } catch {
    return false;
  }
}

function faultOf(messages: readonly string[], session: number, turns: number, acknowledged: ReadonlySet<number>): string | undefined {
  const seen: number[] = [];
  for (let at = 0; at < messages.length; at += 2) {
    const [question = '', answer = ''] = [messages[at], messages[at + 1]];
    const turn = Number(/ turn (\d+)$/.exec(question)?.[1]);
    if (!question.startsWith('u:') || answer !== `a:re: ${nameOf(session, turn)}`) return `not legal at ${at}: ${question} | ${answer}`;
    seen.push(turn);
  }
  if (seen.some((turn, at) => at > 0 && turn <= (seen[at - 1] ?? -1))) return `doubled or out of order: ${seen.join(' ')}`;
  const missing = Array.from({ length: turns }, (_, turn) => turn).filter((turn) => acknowledged.has(turn) && !seen.includes(turn));
  return missing.length > 0 ? `acknowledged and missing: ${missing.join(' ')}` : undefined;
}
