import type { AdminReply, AdminRequest } from '../contracts/admin.ts';
import { type AdminRoute, matchPath } from './route.ts';

/** Dispatches an operator's request; undefined: there is nothing there. */
export function createAdmin(routes: readonly AdminRoute[]): (request: AdminRequest) => Promise<AdminReply | undefined> {
  return async (request) => {
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    for (const route of routes) {
      const params = route.method === method ? matchPath(route.pattern, request.path) : undefined;
      if (params) return route.handle(request, params);
    }
    return undefined;
  };
}
