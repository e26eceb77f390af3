import { definePlugin } from '../src/contracts/plugin.ts';

/** Fits a copy of the messages to the target of this try; the request and the history stay as they are. */
export default definePlugin({
  name: 'trim',
  after: 'failover',
  setup: ({ rooms }) => ({
    async handle(exchange, next) {
      const { attempt, request, session, config } = exchange;
      // A caller's own conversation is left as it is, and no tool of hermes' own has put anything into it.
      const untouched = session === undefined && !config.trim.stateless && config.tools.length === 0 && config.tool_sources.length === 0;
      if (attempt === undefined || untouched) return next();
      const fitted = await rooms.context.fit(exchange, attempt.request ?? request, attempt.upstream);
      if (fitted.request !== request) attempt.request = fitted.request;
      const answer = await next();
      const { left } = fitted;
      if (left && session && config.session.summarize_dropped && !answer.error) {
        void rooms.context.recap(exchange, left, (question, { id, upstreams: [upstream] }) => {
          if (upstream === undefined) throw new Error(`the model ${id} has no upstream`);
          return next(exchange.fork({ request: question, attempt: { number: 1, model: id, upstream }, detached: true }));
        });
      }
      if (session) {
        answer.facts.trimmedMessages = fitted.dropped;
        answer.facts.contextTokens = fitted.tokens;
      }
      return answer;
    },
  }),
});
