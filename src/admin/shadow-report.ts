import type { ShadowRoom } from '../contracts/shadow.ts';
import { type AdminRoute, limitOf } from './route.ts';

/** `GET /admin/shadow/report`: live against candidate, summed by pair of rules. */
export function shadowRoutes(shadow: ShadowRoom): AdminRoute[] {
  return [{ method: 'GET', pattern: '/admin/shadow/report', handle: async ({ query }) => ({ body: await shadow.report({ limit: limitOf(query) }) }) }];
}
