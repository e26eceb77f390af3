import { definePlugin } from '../src/contracts/plugin.ts';

/** Who asks: proves the credential, removes it, and settles what the caller counts as. */
export default definePlugin({
  name: 'auth',
  setup: ({ rooms }) => ({
    async handle(exchange, next) {
      const { inbound, config } = exchange;
      const { credential, method, path } = inbound;
      delete inbound.credential;
      const proof = rooms.access.authenticate(config, credential, { method, path, body: inbound.bytes });
      exchange.principal = proof instanceof Promise ? await proof : proof;
      exchange.caller = rooms.access.toCaller(exchange, exchange.principal);
      return next();
    },
  }),
});
