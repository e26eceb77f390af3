import { definePlugin } from '../src/contracts/plugin.ts';

/** Gives an answer again instead of paying for it twice. Behind the decision which model serves, so that a hit is what that model said; in front of everything that calls. */
export default definePlugin({
  name: 'cache',
  after: 'schedule',
  before: 'shadow',
  setup: ({ rooms, config }) => (config.cache?.enabled ? { handle: (exchange, next) => rooms.cache.serve(exchange, next) } : {}),
});
