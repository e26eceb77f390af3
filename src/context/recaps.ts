import { createHash } from 'node:crypto';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { ModelEntry } from '../contracts/config.ts';
import type { Answer, Exchange, SessionTurn } from '../contracts/exchange.ts';
import { recapKey } from '../contracts/recap-key.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { type ChatMessage, type ChatRequest, messageText } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import { headAndTail } from './summarise.ts';

export type AskModel = (request: ChatRequest, model: ModelEntry) => Promise<Answer>;
interface Recap {
  text: string;
  /** The newest message that it covers. */
  through: string;
}

const KEEP_MS = 90 * 86_400_000;
/** A summary is made anew when at least so many messages have gone since. */
const WORTH_IT = 4;
const MAX_TRANSCRIPT = 40_000;
const MAX_MESSAGE = 4000;
const INSTRUCTION =
  'Sum up the conversation below for the assistant that will carry it on: facts, names, numbers, decisions and open questions, in the language of the conversation. Write the summary only.';

/** Rolling summaries of what trimming leaves out (`session.summarize_dropped`). */
export class Recaps {
  readonly #cold: ColdStore;
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #running = new Set<string>();

  constructor({ cold, environment, log }: { cold: ColdStore; environment: Environment; log: Log }) {
    this.#cold = cold;
    this.#environment = environment;
    this.#log = log;
  }

  /** As a message; undefined when there is none (yet), or cold is away: the request goes without. */
  async find(turn: SessionTurn): Promise<ChatMessage | undefined> {
    const recap = await this.#read(turn);
    return recap && { role: 'system', content: `Summary of the earlier conversation, which is not shown:\n${recap.text}` };
  }

  async renew(exchange: Exchange, left: readonly ChatMessage[], ask: AskModel): Promise<void> {
    const { session: turn, config } = exchange;
    const setting = config.session.summarize_dropped;
    const model = setting && config.registry.find(setting.model);
    const newest = left.at(-1);
    if (!turn || !setting || !model || !newest) return;
    const key = recapKey(turn.project, turn.id);
    if (this.#running.has(key)) return;
    this.#running.add(key);
    try {
      const known = await this.#read(turn);
      const covered = known ? left.findLastIndex((message) => fingerprint(message) === known.through) + 1 : 0;
      if (known && left.length - covered < WORTH_IT) return;
      const answer = await ask(toRequest(known?.text, left.slice(covered), setting.max_tokens), model);
      const text = textOf(answer);
      if (text === '') this.#log.warn({ model: model.id, code: answer.error?.code }, 'no summary of a dropped history was made');
      else await this.#cold.setValue(key, JSON.stringify({ text, through: fingerprint(newest) } satisfies Recap), this.#environment.now() + KEEP_MS);
    } catch (thrown) {
      this.#log.warn({ err: thrown, model: model.id }, 'no summary of a dropped history was made');
    } finally {
      this.#running.delete(key);
    }
  }

  async #read({ project, id }: SessionTurn): Promise<Recap | undefined> {
    const value = await this.#cold.getValue(recapKey(project, id)).catch(() => undefined);
    if (value === undefined) return undefined;
    const { text, through }: Partial<Record<keyof Recap, unknown>> = JSON.parse(value);
    return typeof text === 'string' && typeof through === 'string' ? { text, through } : undefined;
  }
}

function toRequest(before: string | undefined, left: readonly ChatMessage[], maxTokens: number): ChatRequest {
  const lines = left.map((message) => {
    const calls = (message.tool_calls ?? []).map(({ function: called }) => `[calls ${called.name} ${called.arguments}]`);
    const text = [messageText(message), ...calls].filter(Boolean).join(' ');
    return `${message.role}: ${text.length > MAX_MESSAGE ? headAndTail(text, MAX_MESSAGE) : text}`;
  });
  const transcript = [...(before === undefined ? [] : [`Summary so far: ${before}`]), ...lines].join('\n');
  return {
    messages: [
      { role: 'system', content: INSTRUCTION },
      { role: 'user', content: transcript.length > MAX_TRANSCRIPT ? headAndTail(transcript, MAX_TRANSCRIPT) : transcript },
    ],
    max_tokens: maxTokens,
  };
}

function textOf(answer: Answer): string {
  if (answer.error || !isRecord(answer.view) || !Array.isArray(answer.view.choices)) return '';
  const [choice]: unknown[] = answer.view.choices;
  return isRecord(choice) && isRecord(choice.message) && typeof choice.message.content === 'string' ? choice.message.content.trim() : '';
}

function fingerprint(message: ChatMessage): string {
  return createHash('sha256')
    .update(JSON.stringify([message.role, message.content, message.tool_calls]))
    .digest('base64url');
}
