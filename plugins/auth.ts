import type { Principal } from '../src/contracts/exchange.ts';
import { definePlugin } from '../src/contracts/plugin.ts';

/** Who asks: proves the credential, removes it, and settles what the caller counts as. */
export default definePlugin({
  name: 'auth',
  setup: ({ rooms }) => ({
    handle(exchange, next) {
      const { inbound, config, headers, trace } = exchange;
      const { credential, method, path, bytes: body, remoteAddress } = inbound;
      const bodiless = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
      inbound.credential = undefined;
      const proceed = (principal: Principal) => {
        exchange.principal = principal;
        exchange.caller = rooms.access.toCaller(exchange, principal);
        return next();
      };
      const proof = rooms.access.authenticate(config, credential, { method, path, body, bodiless, remoteAddress, requestId: trace.id });
      return proof instanceof Promise ? proof.then(proceed) : proceed(proof);
    },
  }),
});
