import type { AdminReply, AdminRequest } from '../contracts/admin.ts';
import { HermesError } from '../contracts/errors.ts';
import { StoreUnavailable } from '../contracts/hot-store.ts';
import { storeAway } from '../contracts/store-away.ts';
import { type AdminRoute, matchPath } from './route.ts';

/** Dispatches an operator's request; undefined: there is nothing there. Throws `method_not_allowed` where there is something for another method. */
export function createAdmin(routes: readonly AdminRoute[]): (request: AdminRequest) => Promise<AdminReply | undefined> {
  return async (request) => {
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const methods: string[] = [];
    for (const route of routes) {
      const params = matchPath(route.pattern, request.path);
      if (params && route.method === method) return handled(route, request, params);
      if (params) methods.push(route.method);
    }
    if (methods.length === 0) return undefined;
    const allow = methods.join(', ');
    throw new HermesError('method_not_allowed', `Use ${allow} on this path.`, { headers: { allow } });
  };
}

/** Sessions, keys, books and traces are all in the same store. */
async function handled(route: AdminRoute, request: AdminRequest, params: Readonly<Record<string, string>>): Promise<AdminReply> {
  try {
    return await route.handle(request, params);
  } catch (thrown) {
    throw thrown instanceof StoreUnavailable ? storeAway(thrown) : thrown;
  }
}
