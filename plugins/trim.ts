import { definePlugin } from '../src/contracts/plugin.ts';

/** Fits a copy of the messages to the target of this try; the request and the history stay as they are. */
export default definePlugin({
  name: 'trim',
  after: 'failover',
  setup: ({ rooms }) => ({
    async handle(exchange, next) {
      const { attempt, request, session } = exchange;
      if (attempt === undefined) return next();
      const fitted = await rooms.context.fit(exchange, attempt.request ?? request, attempt.upstream);
      if (fitted.request !== request) attempt.request = fitted.request;
      const answer = await next();
      if (session) {
        answer.facts.trimmedMessages = fitted.dropped;
        answer.facts.contextTokens = fitted.tokens;
      }
      return answer;
    },
  }),
});
