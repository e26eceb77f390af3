import type { ColdStore, FoundTurn } from '../contracts/cold-store.ts';
import type { AnswerInit, Exchange } from '../contracts/exchange.ts';
import { idReused } from '../contracts/id-reused.ts';
import type { ChatMessage } from '../wire/chat.ts';
import type { SessionName } from './session-name.ts';

/**
 * The turn that an earlier try of this very request has stored: a crash may lie between the turn and its outcome, and a broken-off
 * or degraded answer has no outcome at all.
 */
export async function findStoredTurn(cold: ColdStore, exchange: Exchange, name: SessionName, now: number): Promise<FoundTurn | undefined> {
  const { run, config } = exchange;
  if (!run?.resumable || run.mark === undefined) return undefined;
  const found = await cold.findTurn(name.project, name.session, run.mark);
  if (found === undefined || found.messages.length === 0 || found.at < now - config.idempotency.ttl_seconds * 1000) return undefined;
  if (found.body !== run.fingerprint) throw idReused();
  return found;
}

/** Its answer may be given again. */
export function isWhole({ messages }: FoundTurn): boolean {
  const last = messages.at(-1);
  return last?.message.role === 'assistant' && !last.partial && !last.degraded;
}

/** The answer as it was stored, under the id of the run. */
export function toStoredAnswer({ messages, model, at }: FoundTurn, exchange: Exchange): AnswerInit {
  const said = messages.map(({ message }) => message).filter(({ role }) => role === 'assistant');
  const last: ChatMessage = { ...(said.at(-1) as ChatMessage) };
  // A stream shows what the model said in every round.
  if (exchange.wants.stream && typeof last.content === 'string')
    last.content = said.map(({ content }) => (typeof content === 'string' ? content : '')).join('');
  const id = `chatcmpl-${exchange.run?.id ?? exchange.id}`;
  const finish_reason = last.tool_calls?.length ? 'tool_calls' : 'stop';
  const body = { id, object: 'chat.completion' as const, created: Math.floor(at / 1000), model, choices: [{ index: 0, message: last, finish_reason }] };
  return { body, facts: { model, replayed: true, attempts: 0 } };
}
