import type { ModelCall } from '../contracts/exchange.ts';
import type { AccountingRoom } from '../contracts/rooms.ts';
import { priceCall } from './price.ts';

/** Hears of every model call, prices it and tells the listeners: ledger, budgets, metrics. Nothing else counts. */
export function createAccountingRoom(): AccountingRoom {
  const listeners: ((call: ModelCall) => void)[] = [];
  const price: AccountingRoom['price'] = (config, call) => priceCall(config, config.registry.models.get(call.model)?.pricing ?? [], call);
  return {
    price,
    onCall: (listener) => listeners.push(listener),
    record(call, config) {
      call.costNanoUsd = price(config, call);
      for (const listener of listeners) listener(call);
    },
  };
}
