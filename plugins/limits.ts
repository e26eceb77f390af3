import type { Reservation } from '../src/contracts/exchange.ts';
import { definePlugin } from '../src/contracts/plugin.ts';

/** Takes from every bucket that the request concerns, or refuses; settles the tokens when the answer is over. */
export default definePlugin({
  name: 'limits',
  after: 'idempotency',
  local: () => ({ held: undefined as Reservation | undefined }),
  setup: ({ rooms, config }) => {
    if (config.limits.length === 0) return undefined;
    return {
      handle(exchange, next, local) {
        const proceed = (held: Reservation | undefined) => {
          local.held = held;
          exchange.reservation = held;
          return next();
        };
        const held = rooms.limits.reserve(exchange);
        return held instanceof Promise ? held.then(proceed) : proceed(held);
      },
      onEnd(exchange, _outcome, local) {
        local.held?.settle(exchange.calls);
      },
    };
  },
});
