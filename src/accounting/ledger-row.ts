import type { LedgerRow } from '../contracts/cold-store.ts';
import type { ModelCall, SavedAnswer } from '../contracts/exchange.ts';
import { toLedgerCounts } from '../contracts/ledger-counts.ts';

type RowKey = Pick<LedgerRow, 'hour' | 'project' | 'service' | 'user' | 'session' | 'key' | 'route' | 'model' | 'upstream' | 'shadow'>;

/** What a line of the books is told by, in a call or a saved answer. */
export type Booked = Omit<SavedAnswer, 'tokens'> & Pick<ModelCall, 'shadow'>;

/** What tells lines apart, as one text; each part with its length, so that no name can pass for two. */
export function toLineText({ project, service, key, route, model, upstream, shadow }: Booked, hour: string, user: string, session: string): string {
  return `${hour}${shadow ? '!' : ''}${project.length}:${project}${service.length}:${service}${key.length}:${key}${route.length}:${route}${model.length}:${model}${upstream.length}:${upstream}${user.length}:${user}${session}`;
}

/** The line that a call is added to: the hour of its start in `cost.timezone`, and who, where and what. */
export function keyOf(call: Booked, hour: string): RowKey {
  return {
    hour,
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

const NO_COUNTS = toLedgerCounts(() => 0);
export function emptyRow(key: RowKey): LedgerRow {
  return { ...key, ...NO_COUNTS, cost_nano_usd: 0n };
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
