import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Config } from '../contracts/config.ts';
import type { RouteDecision } from '../contracts/exchange.ts';
import type { RouteSubject } from '../contracts/routing.ts';
import { isRecord } from '../wire/json.ts';
import { newestUserText } from '../wire/newest-user-text.ts';

interface Decided {
  /** A digest of how the turn's text begins: enough to tell one turn from another, and nothing that anybody said. */
  turn: string;
  decision: RouteDecision;
}
/** Where other instances, and this one after a restart, find it. */
export interface SharedDecisions {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<unknown>;
}
/** Sessions that may come back with tool results at any one time. */
const MAX_SESSIONS = 10_000;
/** Characters of a turn's text that are looked at. */
const TEXT_LOOKED_AT = 500;

/**
 * How turns that may be continued with tool results were decided: the continuation keeps the turn's model although it names
 * no model again, comes without the user's level, or after a rule's hours have ended, on whichever instance. Where a store is away,
 * the same text decides, which nearly always comes to the same.
 */
export class TurnDecisions {
  readonly #sessions = new LRUCache<string, Decided>({ max: MAX_SESSIONS });
  readonly #shared: SharedDecisions | undefined;

  constructor(shared?: SharedDecisions) {
    this.#shared = shared;
  }

  /** Only a turn that offers the client's own tools comes back. */
  remember(subject: RouteSubject, decision: RouteDecision): void {
    const { session, request } = subject;
    if (!session || !request.tools?.length) return;
    const key = keyOf(session);
    const decided: Decided = { turn: turnOf(request), decision };
    const known = this.#sessions.get(key);
    // A continuation, decided by what is there.
    if (known?.turn === decided.turn && known.decision === decision) return;
    this.#sessions.set(key, decided);
    this.#shared?.set(key, JSON.stringify(decided)).catch(() => undefined);
  }

  /** Undefined: no continuation, or its turn is not known. */
  recall(subject: RouteSubject, config: Config): RouteDecision | undefined | Promise<RouteDecision | undefined> {
    const { session, request } = subject;
    if (!session || request.messages.at(-1)?.role !== 'tool') return undefined;
    const key = keyOf(session);
    const turn = turnOf(request);
    const fits = (decided: Decided | undefined): RouteDecision | undefined =>
      decided?.turn === turn && config.registry.models.has(decided.decision.model) ? decided.decision : undefined;
    const fetched = (text: string | undefined): RouteDecision | undefined => {
      const decided = fromText(text);
      const decision = fits(decided);
      if (decided && decision) this.#sessions.set(key, decided);
      return decision;
    };
    return (
      fits(this.#sessions.get(key)) ??
      this.#shared
        ?.get(key)
        .then(fetched)
        .catch(() => undefined)
    );
  }
}

function fromText(text: string | undefined): Decided | undefined {
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  if (!isRecord(value) || typeof value.turn !== 'string' || !isRecord(value.decision)) return undefined;
  const { rule, model } = value.decision;
  if (typeof rule !== 'string' || typeof model !== 'string') return undefined;
  return { turn: value.turn, decision: { tools: undefined, ...value.decision } as RouteDecision };
}

function keyOf({ project, id }: { project: string; id: string }): string {
  return `route:${encodeURIComponent(project)}:${digest(id)}`;
}
function turnOf({ messages }: RouteSubject['request']): string {
  return digest(newestUserText(messages).slice(0, TEXT_LOOKED_AT));
}
function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
