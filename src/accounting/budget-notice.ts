import { createHmac } from 'node:crypto';
import type { BudgetConfig, Config } from '../contracts/config.ts';
import type { Log } from '../contracts/telemetry.ts';
import { isRecord } from '../wire/json.ts';

/** SPEC 12, webhook `json`. */
export interface BudgetNotice {
  event: 'budget_crossed';
  budget: string;
  /** Null, and one of the next, where the budget is of something else. */
  service: string | null;
  project?: string;
  user?: string;
  key?: string;
  /** When it was crossed. */
  day: string;
  usd: number;
  limit_usd: number;
  /** Null: it refuses. */
  switch_to: string | null;
  action?: 'refuse';
  period: 'day' | 'month';
}
/** A POST that gives the parsed answer; rejects for a status that is not 2xx. */
export type PostJson = (
  url: string,
  init: { method: 'POST'; headers: Record<string, string>; body: string; signal: AbortSignal },
  timeoutMs: number,
) => Promise<unknown>;

const TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const TRIES = 12;

/** The message in the form of the service that gets it. */
export function toMessage(notice: BudgetNotice, format: 'json' | 'feishu' | 'dingtalk' | 'slack'): unknown {
  const { budget, service, user, key, project, day, usd, limit_usd, switch_to, action, period } = notice;
  const when = period === 'day' ? `on ${day}` : `in ${day.slice(0, 7)}`;
  const effect = action === 'refuse' ? 'requests are refused' : `dearer models are replaced by ${switch_to}`;
  const of = service ?? user ?? key ?? project;
  const text = `hermes: the budget ${budget} of ${of} is used up ${when}: ${toCents(usd)} of ${toCents(limit_usd)} USD. For the rest of the ${period} ${effect}.`;
  switch (format) {
    case 'json':
      return notice;
    case 'feishu':
      return { msg_type: 'text', content: { text } };
    case 'dingtalk':
      return { msgtype: 'text', text: { content: text } };
    case 'slack':
      return { text };
  }
}

/** Tells the webhook, again and again with growing pauses. True: it was taken. The address is a secret: it is never logged. */
export async function deliver(
  notice: BudgetNotice,
  notify: NonNullable<BudgetConfig['notify']>,
  config: Config,
  {
    post,
    log,
    signal,
    now = Date.now,
    firstPauseMs = FIRST_PAUSE_MS,
  }: { post: PostJson; log: Log; signal: AbortSignal; now?: () => number; firstPauseMs?: number },
): Promise<boolean> {
  const url = config.secrets.get(notify.url_env);
  if (url === undefined) {
    log.warn({ budget: notice.budget }, `nobody is told that a budget is crossed: ${notify.url_env} is not set`);
    return false;
  }
  const secret = notify.secret_env === undefined ? undefined : config.secrets.get(notify.secret_env);
  if (notify.secret_env !== undefined && secret === undefined) {
    log.warn(
      { budget: notice.budget },
      `nobody is told that a budget is crossed: ${notify.secret_env} is not set, and an unsigned message would not be believed`,
    );
    return false;
  }
  const body = JSON.stringify(toMessage(notice, notify.format));
  for (let tries = 1; tries <= TRIES && !signal.aborted; tries++) {
    try {
      refuseRefusals(await post(url, { method: 'POST', headers: toHeaders(body, secret, now()), body, signal }, TIMEOUT_MS), notify.format);
      return true;
    } catch (thrown) {
      if (signal.aborted) break;
      log.warn({ budget: notice.budget, tries, reason: reasonOf(thrown) }, 'the webhook of a budget did not take its message');
      await pause(Math.min(LONGEST_PAUSE_MS, firstPauseMs * 2 ** (tries - 1)), signal);
    }
  }
  return false;
}

/** Each try is signed anew: a receiver may refuse an old timestamp. */
function toHeaders(body: string, secret: string | undefined, now: number): Record<string, string> {
  const headers = { 'content-type': 'application/json' };
  if (secret === undefined) return headers;
  const timestamp = String(Math.floor(now / 1000));
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  return { ...headers, 'x-hermes-timestamp': timestamp, 'x-hermes-signature': `v1=${signature}` };
}

/** Feishu and DingTalk say 200 and mean no. */
function refuseRefusals(answer: unknown, format: string): void {
  const code = isRecord(answer) ? (format === 'feishu' ? answer.code : format === 'dingtalk' ? answer.errcode : 0) : 0;
  if (typeof code === 'number' && code !== 0) throw new Error(`code ${code}`);
}

/** Codes and statuses only: other messages may hold the address. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'failed';
  if (/^(status|code) \d+$/.test(thrown.message)) return thrown.message;
  return 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : thrown.name;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    timer.unref();
    signal.addEventListener('abort', done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}

/** Cents, or as many digits as a smaller sum needs. */
function toCents(usd: number): string {
  return usd > 0 && usd < 0.01 ? usd.toFixed(9).replace(/0+$/, '') : usd.toFixed(2);
}
