import { definePlugin } from '../src/contracts/plugin.ts';

/** Offers the tools that may be used, and runs those that the model calls until it has its answer. */
export default definePlugin({
  name: 'tools',
  after: 'shadow',
  setup: ({ rooms: { tools } }) => ({
    handle(exchange, next) {
      const proceed = (offered: boolean) => (offered ? tools.loop(exchange, next) : next());
      const offered = tools.offer(exchange);
      return offered instanceof Promise ? offered.then(proceed) : proceed(offered);
    },
  }),
});
