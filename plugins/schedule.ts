import { definePlugin } from '../src/contracts/plugin.ts';

/** What the hour and the budget say to the routed model. */
export default definePlugin({
  name: 'schedule',
  after: 'route',
  setup: ({ rooms, config: { cost } }) => {
    if (cost.schedule.length === 0 && cost.budgets.length === 0) return undefined;
    return {
      async handle(exchange, next) {
        if (exchange.route) exchange.route = await rooms.schedule.apply(exchange, exchange.route);
        return next();
      },
    };
  },
});
