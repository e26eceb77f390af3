import type { Answer, Attempt, Exchange } from '../src/contracts/exchange.ts';
import { definePlugin, type Next } from '../src/contracts/plugin.ts';
import type { ContextRoom } from '../src/contracts/rooms.ts';

/** Fits a copy of the messages to the target of this try; the request and the history stay as they are. */
export default definePlugin({
  name: 'trim',
  after: 'failover',
  setup: ({ rooms }) => ({
    handle(exchange, next) {
      const { attempt, session, config } = exchange;
      // A caller's own conversation is left as it is, and no tool of hermes' own has put anything into it.
      const untouched = session === undefined && !config.trim.stateless && config.tools.length === 0 && config.tool_sources.length === 0;
      return attempt === undefined || untouched ? next() : fit(rooms.context, exchange, attempt, next);
    },
  }),
});

async function fit(context: ContextRoom, exchange: Exchange, attempt: Attempt, next: Next): Promise<Answer> {
  const { request, session, config } = exchange;
  const fitted = await context.fit(exchange, attempt.request ?? request, attempt.upstream);
  if (fitted.request !== request) attempt.request = fitted.request;
  const answer = await next();
  const { left } = fitted;
  if (left && session && config.session.summarize_dropped && !answer.error) {
    void context.recap(exchange, left, (question, { id, upstreams: [upstream] }) => {
      if (upstream === undefined) throw new Error(`the model ${id} has no upstream`);
      return next(exchange.fork({ request: question, attempt: { number: 1, model: id, upstream }, detached: true }));
    });
  }
  if (session) {
    answer.facts.trimmedMessages = fitted.dropped;
    answer.facts.contextTokens = fitted.tokens();
  }
  return answer;
}
