import type { Answer, Exchange } from '../src/contracts/exchange.ts';
import { definePlugin, type Next } from '../src/contracts/plugin.ts';
import type { OpenTurn, SessionsRoom } from '../src/contracts/rooms.ts';

/** A conversation's memory: the stored history goes before the request, the turn is stored before the client sees its end. */
export default definePlugin({
  name: 'session',
  after: 'limits',
  local: () => ({ turn: undefined as OpenTurn | undefined }),
  setup: ({ rooms }) => ({
    handle(exchange, next, local) {
      const { sessionId, refers } = exchange.ask;
      return sessionId || refers ? remember(rooms.sessions, exchange, next, local) : next();
    },
    onEnd(exchange, outcome, local) {
      return local.turn?.end(exchange, outcome);
    },
  }),
});

async function remember(sessions: SessionsRoom, exchange: Exchange, next: Next, local: { turn: OpenTurn | undefined }): Promise<Answer> {
  if (exchange.ask.refers) await sessions.resolve(exchange);
  if (!exchange.ask.sessionId) return next();
  const turn = await sessions.begin(exchange);
  local.turn = turn;
  if (turn.stored) exchange.answer = turn.stored;
  const answer = turn.stored && exchange.answer ? exchange.answer : await next();
  // A client may take the finish event for the end: it waits until the turn is stored.
  answer.holdFinish = true;
  if (answer.stream) answer.stream = turn.watch(answer.stream);
  const { session } = exchange;
  if (session) Object.assign(answer.facts, { sessionId: session.id, sessionMessages: session.historyMessages });
  return answer;
}
