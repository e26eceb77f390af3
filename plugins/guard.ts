import { definePlugin } from '../src/contracts/plugin.ts';

/** Content that must not pass, in both directions. Next to the models: history and results of tools pass it on their way out, tools and sessions get what was said, not placeholders. */
export default definePlugin({
  name: 'guard',
  after: 'tools',
  before: 'failover',
  setup({ rooms, config }) {
    if (config.guards.length === 0) return {};
    rooms.guards.prepare(config);
    return { handle: (exchange, next) => rooms.guards.guard(exchange, next) };
  },
});
