import { HermesError } from '../contracts/errors.ts';
import type { AccountingRoom } from '../contracts/rooms.ts';
import { priceCall } from './price.ts';
import { pricingOf, pricingOfCall } from './pricing-of.ts';

/** Hears of every model call, prices it and tells the listeners: ledger, budgets, metrics. Nothing else counts. */
export function createAccountingRoom(): AccountingRoom {
  const listeners: Parameters<AccountingRoom['onCall']>[0][] = [];
  const ofSaved: Parameters<AccountingRoom['onSaved']>[0][] = [];
  const price: AccountingRoom['price'] = (config, call) => priceCall(config, pricingOfCall(config, call), call);
  return {
    price,
    onCall: (listener) => listeners.push(listener),
    record(call, config) {
      call.costNanoUsd = price(config, call);
      for (const listener of listeners) listener(call, config);
    },
    onSaved: (listener) => ofSaved.push(listener),
    saved(answer, config) {
      for (const listener of ofSaved) listener(answer, config);
    },
    checkPriced(config, { model, upstream }) {
      if (config.cost.unpriced !== 'refuse' || pricingOf(config, upstream).length > 0) return;
      throw new HermesError('model_unpriced', `The model "${model}" has no price, and cost.unpriced refuses such calls: its operator must give it a pricing.`);
    },
  };
}
