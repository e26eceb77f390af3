import type { KeyConfig } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import { type AdminRoute, pageOf } from './route.ts';

/** Keys that are added and revoked at run time. */
export interface KeyBook {
  list(): Promise<readonly object[]>;
  add(config: KeyConfig, by: string): Promise<{ key: string; view: object }>;
  revoke(id: string): Promise<object | undefined>;
}
export interface KeyRoutesDeps {
  book: KeyBook;
  /** Throws `invalid_value` with every mistake. */
  parse(body: unknown): KeyConfig;
  /** Those of the configuration. */
  configured(): readonly KeyConfig[];
  /** What of a key allows nothing, as there is no such model or tool. */
  idle(config: KeyConfig): string[];
}

/** What `/admin/keys` and `hermes-cli key` do. */
export interface KeyViews {
  list(): Promise<{ data: object[]; next_cursor: null }>;
  add(body: unknown, by: string): Promise<object>;
  revoke(id: string): Promise<object>;
}

export function createKeyViews({ book, parse, configured, idle }: KeyRoutesDeps): KeyViews {
  return {
    async list() {
      const inFile = configured().map(({ key_env: _env, sha256: _hash, ...view }) => ({ ...view, source: 'configuration' }));
      return { data: [...inFile, ...(await book.list()).map((view) => ({ ...view, source: 'run_time' }))], next_cursor: null };
    },
    async add(body, by) {
      const config = parse(body);
      if (configured().some(({ id }) => id === config.id))
        throw new HermesError('invalid_value', `The configuration has a key called "${config.id}"; take another id.`, { param: 'id' });
      const { key, view } = await book.add(config, by);
      const warnings = idle(config);
      return { key, ...view, source: 'run_time', ...(warnings.length > 0 ? { warnings } : {}) };
    },
    async revoke(id) {
      const view = await book.revoke(id);
      if (view) return { ...view, source: 'run_time' };
      const inFile = configured().some((key) => key.id === id);
      throw new HermesError(
        'not_found',
        inFile
          ? `The key "${id.slice(0, 128)}" stands in the configuration; take it out there.`
          : `There is no key called "${id.slice(0, 128)}" that could be revoked; GET /admin/keys lists them.`,
      );
    },
  };
}

/** `GET`, `POST /admin/keys`, `DELETE /admin/keys/{id}`. The answer to `POST` holds the key; it is told this once. */
export function keyRoutes(deps: KeyRoutesDeps): AdminRoute[] {
  const views = createKeyViews(deps);
  return [
    { method: 'GET', pattern: '/admin/keys', handle: async ({ query }) => ({ body: pageOf((await views.list()).data, query) }) },
    {
      method: 'POST',
      pattern: '/admin/keys',
      handle: async ({ body, exchange }) => ({ status: 201, body: await views.add(body, exchange.principal?.id ?? '') }),
    },
    { method: 'DELETE', pattern: '/admin/keys/{id}', handle: async (_request, { id = '' }) => ({ body: await views.revoke(id) }) },
  ];
}
