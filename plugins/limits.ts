import type { Reservation } from '../src/contracts/exchange.ts';
import { definePlugin } from '../src/contracts/plugin.ts';

/** Takes from every bucket that the request concerns, or refuses; settles the tokens when the answer is over. */
export default definePlugin({
  name: 'limits',
  after: 'idempotency',
  local: () => ({ held: undefined as Reservation | undefined }),
  setup: ({ rooms }) => ({
    async handle(exchange, next, local) {
      const held = rooms.limits.reserve(exchange);
      local.held = held instanceof Promise ? await held : held;
      exchange.reservation = local.held;
      return next();
    },
    onEnd(exchange, _outcome, local) {
      local.held?.settle(exchange.calls);
    },
  }),
});
