import { definePlugin } from '../src/contracts/plugin.ts';

/** Lets candidate rules decide, and maybe answer, a sample of the requests in the background, and watches a rollout's arms; the client never notices. */
export default definePlugin({
  name: 'shadow',
  after: 'schedule',
  setup: ({ rooms, config }) =>
    (config.shadow ?? config.rollout) && {
      handle(exchange, next) {
        const observed = rooms.shadow.observe(exchange, next);
        return observed ? next().then((answer) => observed.live(answer)) : next();
      },
    },
});
