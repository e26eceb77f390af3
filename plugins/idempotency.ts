import { definePlugin } from '../src/contracts/plugin.ts';

/** Once: the same request again joins the one that runs, or gets the outcome of the one that ended. Everything inside runs in a detached fork. */
export default definePlugin({
  name: 'idempotency',
  after: 'auth',
  setup: ({ rooms }) => ({ handle: (exchange, next) => rooms.idempotency.once(exchange, next) }),
});
