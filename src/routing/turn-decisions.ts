import { LRUCache } from 'lru-cache';
import type { Config } from '../contracts/config.ts';
import type { RouteDecision } from '../contracts/exchange.ts';
import type { RouteSubject } from '../contracts/routing.ts';
import { newestUserText } from '../wire/newest-user-text.ts';

interface Decided {
  text: string;
  decision: RouteDecision;
}
/** Sessions that may come back with tool results at any one time. */
const MAX_SESSIONS = 10_000;
/** Enough to tell one turn's text from another's. */
const TEXT_KEPT = 500;

/**
 * How turns that may be continued with tool results were decided: the continuation keeps the turn's model although it names
 * no model again, comes without the user's level, or after a rule's hours have ended. Of this process; elsewhere the same text
 * decides, which nearly always comes to the same.
 */
export class TurnDecisions {
  readonly #sessions = new LRUCache<string, Decided>({ max: MAX_SESSIONS });

  /** Only a turn that offers the client's own tools comes back. */
  remember(subject: RouteSubject, decision: RouteDecision): void {
    const { session, request } = subject;
    if (!session || !request.tools?.length) return;
    this.#sessions.set(keyOf(session), { text: newestUserText(request.messages).slice(0, TEXT_KEPT), decision });
  }

  /** Undefined: no continuation, or its turn is not known here. */
  recall(subject: RouteSubject, config: Config): RouteDecision | undefined {
    const { session, request } = subject;
    if (!session || request.messages.at(-1)?.role !== 'tool') return undefined;
    const decided = this.#sessions.get(keyOf(session));
    if (decided?.text !== newestUserText(request.messages).slice(0, TEXT_KEPT)) return undefined;
    return config.registry.models.has(decided.decision.model) ? decided.decision : undefined;
  }
}

function keyOf({ project, id }: { project: string; id: string }): string {
  return JSON.stringify([project, id]);
}
