import type { Exchange } from '../contracts/exchange.ts';
import { pause } from './pause.ts';
import type { Failed, Served, UpstreamTry } from './upstream-try.ts';

/** The caller's own word goes before the rule's. */
export function isUrgent({ ask, route, caller }: Exchange): boolean {
  return (ask.priority === undefined ? (route?.priority ?? caller?.priority) : caller?.priority) === 'urgent';
}

/**
 * A second attempt when the first has brought nothing after `delayMs`; the first content wins. The loser is cancelled as
 * superseded before the winner is given back, so that its call is booked by then. When both fail, the later failure counts.
 */
export async function hedge(
  exchange: Exchange,
  first: UpstreamTry,
  begin: () => UpstreamTry | undefined,
  delayMs: number,
  run: (attempt: UpstreamTry) => Promise<Served | Failed>,
): Promise<Served | Failed> {
  const one = run(first);
  const early = await beforeDelay(exchange, one, delayMs);
  if (early) return early;
  const second = exchange.cancelled ? undefined : begin();
  if (second === undefined) return one;
  const two = run(second);
  const winner = await Promise.race([one, two]);
  if ('answer' in winner) {
    (winner.attempt === first ? second : first).discard();
    return winner;
  }
  // A failure that is the client's to see ends the race: the other would be told the same.
  if (winner.verdict.next === 'stop') {
    first.discard();
    second.discard();
    return winner;
  }
  return winner.target === first.target ? two : one;
}

async function beforeDelay(exchange: Exchange, running: Promise<Served | Failed>, delayMs: number): Promise<Served | Failed | undefined> {
  const timer = new AbortController();
  try {
    return await Promise.race([running, pause(exchange, delayMs, timer.signal).then(() => undefined)]);
  } finally {
    timer.abort();
  }
}
