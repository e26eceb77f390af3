import type { RolloutConfig } from '../contracts/config.ts';
import type { Arm } from '../contracts/exchange.ts';
import type { RouteSubject } from '../contracts/routing.ts';
import { newestUserText } from '../wire/newest-user-text.ts';
import { hashOf } from './hash.ts';

const EVERYTHING = 2 ** 32;

/**
 * Whose rules decide. By a hash of who asks, so that one session never changes sides: not in time, not between instances, not
 * over a reload; and who is in a small share is in every greater one.
 */
export function armOf({ percent, by }: Pick<RolloutConfig, 'percent' | 'by'>, subject: RouteSubject): Arm {
  return (hashOf(whoOf(by, subject)) / EVERYTHING) * 100 < percent ? 'candidate' : 'live';
}

/** A request that names nobody goes by its text: its own repeats and tool continuations stay where it was. */
function whoOf(by: RolloutConfig['by'], { ask, caller, principal, request }: RouteSubject): string {
  const project = caller?.project ?? ask.project ?? '';
  const user = caller?.user ?? ask.user;
  if (by === 'session' && ask.sessionId !== undefined) return JSON.stringify(['session', project, ask.sessionId]);
  if (by === 'user' && user !== undefined) return JSON.stringify(['user', project, user]);
  if (by === 'key' && principal) return JSON.stringify(['key', principal.id]);
  return JSON.stringify(['text', project, newestUserText(request.messages).slice(0, 1_000)]);
}
