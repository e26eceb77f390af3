import type { ColdStore } from '../contracts/cold-store.ts';
import type { KeptForm } from '../contracts/door.ts';
import type { Exchange } from '../contracts/exchange.ts';
import { type HotStore, StoreUnavailable } from '../contracts/hot-store.ts';
import { recapKey } from '../contracts/recap-key.ts';
import type { KeptResponse, ResponseName } from '../contracts/rooms.ts';
import { storeAway } from '../contracts/store-away.ts';
import type { Form } from '../contracts/stream.ts';
import type { Log } from '../contracts/telemetry.ts';
import type { ChatCompletion } from '../wire/chat.ts';
import { isRecord, parseJson, stringifyJson } from '../wire/json.ts';
import { sessionKey } from './session-name.ts';

/** The form of answers that their clients may ask for again; undefined: they are of none. */
export type KeptForms = (form: Form) => KeptForm | undefined;

/** The answer as its client may ask for it again. */
export function toKept(kept: KeptForms, exchange: Exchange, completion: ChatCompletion): { id: string; view: unknown } | undefined {
  return kept(exchange.wants.form)?.keep(completion, { ...exchange.answer?.facts, requestId: exchange.run?.id ?? exchange.id }, exchange);
}

/** What a turn stores of such an answer: the first `input` of its messages came with the request. */
export function toRecord({ view }: { view: unknown }, input: number): string {
  return stringifyJson({ input, view });
}

export interface KeptResponsesDeps {
  hot: HotStore;
  cold: ColdStore;
  log: Log;
}

/** Answers that are asked for again by their id, each by the one who was given it. They are part of their session's turn, and go with it. */
export class KeptResponses {
  readonly #deps: KeptResponsesDeps;

  constructor(deps: KeptResponsesDeps) {
    this.#deps = deps;
  }

  async find({ project, session, ...response }: ResponseName): Promise<KeptResponse | undefined> {
    const found = await this.#deps.cold.findResponse(project, session, response).catch(away);
    const record = found && parseJson(found.record);
    if (!isRecord(record) || found === undefined) return undefined;
    const input = typeof record.input === 'number' ? record.input : 0;
    return { view: record.view, input: found.messages.slice(0, input).map(({ message }) => message) };
  }

  async delete({ project, session, ...response }: ResponseName): Promise<boolean> {
    const { hot, cold, log } = this.#deps;
    try {
      const found = await cold.findResponse(project, session, response);
      if (found === undefined || !(await cold.deleteTurn(project, session, found.version))) return false;
      // A summary may tell of it.
      await cold.deleteValue(recapKey(project, session));
    } catch (thrown) {
      away(thrown);
    }
    // Away: the store deletes it before it is used again.
    await hot.deleteSession(sessionKey(project, session)).catch((err) => log.warn({ err }, 'a deleted turn could not be deleted in the hot store yet'));
    return true;
  }
}

function away(thrown: unknown): never {
  throw thrown instanceof StoreUnavailable ? storeAway(thrown) : thrown;
}
