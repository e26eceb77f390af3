import { HermesError } from '../contracts/errors.ts';
import type { UpstreamState } from '../contracts/rooms.ts';
import { type AdminRoute, pageOf } from './route.ts';

export interface OperationsDeps {
  upstreams(): Promise<UpstreamState[]>;
  /** False: there is no such upstream. */
  switchUpstream(verb: 'drain' | 'reset', id: string): Promise<boolean>;
  /** The pipeline in order. */
  plugins(): readonly object[];
  reload(): Promise<{ outcome: 'ok' | 'refused'; warnings: readonly string[]; mistakes: readonly string[] }>;
}

/** Upstream states and switches, the pipeline, and the reload. */
export function operationRoutes({ upstreams, switchUpstream, plugins, reload }: OperationsDeps): AdminRoute[] {
  const change = (verb: 'drain' | 'reset'): AdminRoute => ({
    method: 'POST',
    pattern: `/admin/upstreams/{id}/${verb}`,
    async handle(_request, { id = '' }) {
      if (!(await switchUpstream(verb, id))) {
        const known = (await upstreams()).map((state) => state.id);
        throw new HermesError('not_found', `There is no upstream called "${id.slice(0, 128)}"; there are ${known.join(', ')}.`);
      }
      return { body: { id, done: verb } };
    },
  });
  return [
    { method: 'GET', pattern: '/admin/upstreams', handle: async ({ query }) => ({ body: pageOf(await upstreams(), query) }) },
    change('drain'),
    change('reset'),
    { method: 'GET', pattern: '/admin/plugins', handle: ({ query }) => ({ body: pageOf(plugins(), query) }) },
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
