import type { ColdStore, FoundTurn } from '../contracts/cold-store.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import { sha256 } from '../wire/canonical.ts';
import { type SessionName, toSessionName } from './session-name.ts';
import { isWhole } from './stored-turn.ts';

/** A conversation that goes on from an earlier answer than its newest, in a session of its own. */
export interface Branch {
  name: SessionName;
  /** The turn of the session that it leaves, up to which it goes along. */
  version: number;
  /** What an earlier try of this request has stored in it. */
  earlier: FoundTurn | undefined;
}

const NAME_LENGTH = 32;

/**
 * Undefined: the answer that the caller goes on with is the newest, or no turn is known by its id (deleted since, or broken off): the session goes on.
 * The branch of a request that may be repeated is named after it, so that the repeat finds it.
 */
export async function findBranch(
  exchange: Exchange,
  name: SessionName,
  { cold, freshId, findEarlier }: { cold: ColdStore; freshId: () => string; findEarlier: (name: SessionName) => Promise<FoundTurn | undefined> },
): Promise<Branch | undefined> {
  const { ask, run } = exchange;
  const left = ask.continues === undefined ? undefined : await cold.turnOfResponse(name.project, name.session, ask.continues);
  if (left === undefined || left.newest) return undefined;
  const { version } = left;
  const fresh = (): Branch => ({ name: toSessionName(name.project, freshId()), version, earlier: undefined });
  if (run?.mark === undefined) return fresh();
  const own = toSessionName(name.project, sha256(JSON.stringify([name.session, run.mark])).slice(0, NAME_LENGTH));
  const earlier = await findEarlier(own);
  if (earlier && isWhole(earlier)) return { name: own, version, earlier };
  return (await cold.sessionVersion(own.project, own.session)) > 0 ? fresh() : { name: own, version, earlier: undefined };
}

export function notHere(): HermesError {
  return new HermesError('invalid_value', "The response of 'previous_response_id' is not kept any more; send the conversation as input.", {
    param: 'previous_response_id',
    wireCode: 'previous_response_not_found',
  });
}
