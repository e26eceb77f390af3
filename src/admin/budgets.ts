import { HermesError } from '../contracts/errors.ts';
import { type AdminRoute, pageOf } from './route.ts';

export interface BudgetRoutesDeps {
  views(): readonly object[];
  /** The rest of the day without it; undefined: there is no such budget. */
  lift(id: string): Promise<object | undefined>;
}

/** `GET /admin/budgets`, `POST /admin/budgets/{id}/lift`. */
export function budgetRoutes({ views, lift }: BudgetRoutesDeps): AdminRoute[] {
  return [
    { method: 'GET', pattern: '/admin/budgets', handle: ({ query }) => ({ body: pageOf(views(), query) }) },
    {
      method: 'POST',
      pattern: '/admin/budgets/{id}/lift',
      async handle(_request, { id = '' }) {
        const budget = await lift(id);
        if (budget === undefined) throw new HermesError('not_found', `There is no budget called "${id.slice(0, 128)}"; GET /admin/budgets lists them.`);
        return { body: { id, done: 'lift', budget } };
      },
    },
  ];
}
