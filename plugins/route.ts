import { definePlugin, type Exchange, type Next, type RouteDecision } from '../src/contracts/index.ts';

/** Decides which model and which tools serve: by the name that the caller gave, else by the rules. */
export default definePlugin({
  name: 'route',
  after: ['session'],
  setup: ({ rooms }) => ({
    handle(exchange, next) {
      // Synchronous unless a rule by meaning is reached: an await here would cost every request.
      const decision = rooms.routing.compile(exchange.config).decide(exchange);
      return decision instanceof Promise ? decision.then((decided) => proceed(exchange, decided, next)) : proceed(exchange, decision, next);
    },
  }),
});

function proceed(exchange: Exchange, decision: RouteDecision, next: Next) {
  exchange.route = decision;
  // A rule's priority stands in where the caller stated none, for all that comes after.
  if (decision.priority !== undefined && exchange.caller && exchange.caller.priority !== decision.priority) {
    exchange.caller = { ...exchange.caller, priority: decision.priority };
  }
  return next();
}
