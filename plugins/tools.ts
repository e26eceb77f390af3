import { definePlugin } from '../src/contracts/plugin.ts';

/** Offers the tools that may be used, and runs those that the model calls until it has its answer. */
export default definePlugin({
  name: 'tools',
  after: 'shadow',
  setup: ({ rooms }) => ({ handle: (exchange, next) => (rooms.tools.offer(exchange) ? rooms.tools.loop(exchange, next) : next()) }),
});
