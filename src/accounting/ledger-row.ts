import type { LedgerRow } from '../contracts/cold-store.ts';
import type { ModelCall, SavedAnswer } from '../contracts/exchange.ts';
import { toLedgerCounts } from '../contracts/ledger-counts.ts';
import { hourOf } from './calendar.ts';

export type RowKey = Pick<LedgerRow, 'hour' | 'project' | 'service' | 'user' | 'session' | 'key' | 'route' | 'model' | 'upstream' | 'shadow'>;

/** The line that a call is added to: its hour in `cost.timezone`, by its start, and who, where and what. */
export function keyOf(call: Omit<SavedAnswer, 'tokens'> & Pick<ModelCall, 'shadow'>, timezone: string): RowKey {
  return {
    hour: hourOf(call.startedAt, timezone),
    project: call.project,
    service: call.service,
    user: call.user ?? '',
    session: call.session ?? '',
    key: call.key,
    route: call.route,
    model: call.model,
    upstream: call.upstream,
    shadow: call.shadow,
  };
}

export function emptyRow(key: RowKey): LedgerRow {
  return {
    ...key,
    ...toLedgerCounts(() => 0),
    cost_nano_usd: 0n,
  };
}

/** A call that its client broke off has not failed. */
export function addCall(row: LedgerRow, { outcome, estimated, tokens, costNanoUsd }: ModelCall): void {
  row.calls += 1;
  if (outcome !== 'ok' && outcome !== 'aborted') row.failed_calls += 1;
  if (estimated) row.estimated_calls += 1;
  row.input_tokens += tokens.input;
  row.cached_tokens += tokens.cached;
  row.output_tokens += tokens.output;
  row.reasoning_tokens += tokens.reasoning;
  row.cost_nano_usd += BigInt(costNanoUsd ?? 0);
}
