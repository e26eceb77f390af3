import { toPrincipal } from '../access/keys.ts';
import type { DebugCaller, DebugRouteDeps } from '../admin/debug-route.ts';
import type { Entered } from '../contracts/door.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { PipelineExchange } from '../pipeline/exchange.ts';
import { ExchangeTrace } from '../telemetry/trace.ts';
import type { House } from './house.ts';

/** What `/debug/route` and `route debug` decide with: the house's own rooms. */
export function dryRunOf({ rooms, doors, environment, keys }: Pick<House, 'rooms' | 'doors' | 'environment' | 'keys'>): DebugRouteDeps {
  const door = doors.get('openai-chat');
  if (door === undefined) throw new Error('there is no door for openai-chat');
  return {
    rooms,
    enter: door.enter,
    begin: (parent, entered) => beginDry(environment, parent, entered),
    principalOf(config, keyId) {
      const key = config.auth.keys.find(({ id }) => id === keyId);
      return key ? toPrincipal(key) : keys.principalOf(keyId);
    },
  };
}

/** An exchange in which nothing runs: no client, no deadline, no bytes. */
function beginDry(environment: Environment, parent: DebugCaller, { request, ask, stream, usage }: Entered): Exchange {
  const id = environment.uuid();
  return new PipelineExchange({
    id,
    config: parent.config,
    headers: parent.headers,
    ask,
    wants: { stream, form: 'openai-chat', verbose: false, usage, commit: undefined },
    inbound: { form: 'openai-chat', method: 'POST', path: '/debug/route', bytes: undefined, request, remoteAddress: '' },
    trace: new ExchangeTrace(id, environment.now(), performance.now(), undefined),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
}
