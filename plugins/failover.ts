import { definePlugin } from '../src/contracts/index.ts';
import type { OpenAttempt } from '../src/contracts/rooms.ts';

/** Chooses an upstream, tries again elsewhere, falls back; the breaker hears how a stream that was handed out ended. */
export default definePlugin({
  name: 'failover',
  after: 'tools',
  local: () => ({ open: undefined as OpenAttempt | undefined }),
  setup({ rooms, config }) {
    // Every upstream has its state in the metrics from the start.
    rooms.upstream.states(config);
    return {
      handle: (exchange, next, local) => rooms.upstream.failover(exchange, next, local),
      onEnd(_exchange, outcome, local) {
        local.open?.end(outcome);
      },
    };
  },
});
