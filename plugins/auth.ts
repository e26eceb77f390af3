import type { Principal } from '../src/contracts/exchange.ts';
import { definePlugin } from '../src/contracts/plugin.ts';

/** Who asks: proves the credential, removes it, and settles what the caller counts as. */
export default definePlugin({
  name: 'auth',
  setup: ({ rooms }) => ({
    handle(exchange, next) {
      const { inbound, config } = exchange;
      const { credential, method, path, bytes: body } = inbound;
      inbound.credential = undefined;
      const proceed = (principal: Principal) => {
        exchange.principal = principal;
        exchange.caller = rooms.access.toCaller(exchange, principal);
        return next();
      };
      const proof = rooms.access.authenticate(config, credential, { method, path, body });
      return proof instanceof Promise ? proof.then(proceed) : proceed(proof);
    },
  }),
});
