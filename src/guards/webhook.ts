import { createHmac } from 'node:crypto';
import type { Exchange } from '../contracts/exchange.ts';
import type { GuardConfig, GuardDirection } from '../contracts/guards.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { isRecord, stringifyJson } from '../wire/json.ts';

export type FetchJson = (
  url: string,
  init: { method: 'POST'; headers: Record<string, string>; body: string; signal: AbortSignal },
  timeoutMs: number,
) => Promise<unknown>;
export type Verdict = 'allow' | 'block' | 'flag';

/** Posts a text and reads the verdict. Rejects when there is none. */
export async function askWebhook(
  guard: GuardConfig,
  question: { direction: GuardDirection; text: string },
  exchange: Exchange,
  { fetchJson, environment }: { fetchJson: FetchJson; environment: Environment },
): Promise<Verdict> {
  const { caller, config } = exchange;
  const body = stringifyJson({
    guard: guard.id,
    ...question,
    request_id: exchange.id,
    service: caller?.service ?? null,
    project: caller?.project ?? null,
    user: caller?.user ?? null,
  });
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'hermes-agent' };
  const secret = guard.secret_env === undefined ? undefined : config.secrets.get(guard.secret_env);
  if (secret !== undefined) {
    const timestamp = String(Math.floor(environment.now() / 1000));
    headers['x-hermes-timestamp'] = timestamp;
    headers['x-hermes-signature'] = `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;
  }
  return toVerdict(await fetchJson(guard.url ?? '', { method: 'POST', headers, body, signal: exchange.signal }, guard.timeout_ms));
}

/** `{ verdict: "allow" | "block" | "flag" }`; also `{ allow: true }`, `{ block: true }`, `{ flagged: true }`. */
function toVerdict(answer: unknown): Verdict {
  if (isRecord(answer)) {
    const word = answer.verdict ?? answer.action;
    if (word === 'allow' || word === 'block' || word === 'flag') return word;
    const allowed = answer.allow ?? answer.allowed;
    if (typeof allowed === 'boolean') return allowed ? 'allow' : 'block';
    const blocked = answer.block ?? answer.blocked ?? answer.flagged;
    if (typeof blocked === 'boolean') return blocked ? 'block' : 'allow';
  }
  throw new Error('the answer holds no verdict');
}
