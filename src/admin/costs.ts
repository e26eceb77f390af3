import type { AdminReply } from '../contracts/admin.ts';
import type { AdminRoute } from './route.ts';

export interface CostDeps {
  /** A report for a URL's query; throws `invalid_value` naming the field. */
  costs(query: URLSearchParams): Promise<AdminReply>;
}

/** `GET /admin/costs`: what was spent, by whatever the ledger tells apart. */
export function costRoutes({ costs }: CostDeps): AdminRoute[] {
  return [{ method: 'GET', pattern: '/admin/costs', handle: ({ query }) => costs(query) }];
}
