import type { Config } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { UpstreamRoom } from '../contracts/rooms.ts';
import type { AdminRoute } from './route.ts';

export interface OperationsDeps {
  config(): Config;
  upstream: UpstreamRoom;
  /** The pipeline in order. */
  plugins(): readonly object[];
  reload(): Promise<{ outcome: 'ok' | 'refused'; warnings: readonly string[]; mistakes: readonly string[] }>;
}

/** Upstream states and switches, the pipeline, and the reload. */
export function operationRoutes({ config, upstream, plugins, reload }: OperationsDeps): AdminRoute[] {
  const change = (verb: 'drain' | 'reset'): AdminRoute => ({
    method: 'POST',
    pattern: `/admin/upstreams/{id}/${verb}`,
    handle(_request, { id = '' }) {
      if (!upstream[verb](id, config())) {
        const known = upstream.states(config()).map((state) => state.id);
        throw new HermesError('not_found', `There is no upstream called "${id.slice(0, 128)}"; there are ${known.join(', ')}.`);
      }
      return { body: { id, done: verb } };
    },
  });
  return [
    { method: 'GET', pattern: '/admin/upstreams', handle: () => ({ body: { data: upstream.states(config()), next_cursor: null } }) },
    change('drain'),
    change('reset'),
    { method: 'GET', pattern: '/admin/plugins', handle: () => ({ body: { data: plugins(), next_cursor: null } }) },
    {
      method: 'POST',
      pattern: '/admin/reload',
      async handle() {
        const { outcome, warnings, mistakes } = await reload();
        return {
          status: outcome === 'ok' ? 200 : 400,
          body:
            outcome === 'ok'
              ? { reloaded: true, outcome, warnings }
              : {
                  reloaded: false,
                  outcome,
                  mistakes,
                  error: {
                    message: `The configuration was refused, the old one stays: ${mistakes.join('; ')}`,
                    type: 'invalid_request_error',
                    param: null,
                    code: 'invalid_config',
                  },
                },
        };
      },
    },
  ];
}
