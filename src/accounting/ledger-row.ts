import type { LedgerKey, LedgerRow } from '../contracts/cold-store.ts';
import type { ModelCall, SavedAnswer } from '../contracts/exchange.ts';
import { type LedgerSums, toLedgerCounts } from '../contracts/ledger-counts.ts';

/** What a line of the books is told by, in a call or a saved answer. */
export type Booked = Omit<SavedAnswer, 'tokens'> & Pick<ModelCall, 'shadow'>;

/** What tells lines apart, as one text; each part with its length, so that no name can pass for two. */
export function toLineText({ project, service, key, route, model, upstream, shadow }: Booked, hour: string, user: string, session: string): string {
  return `${hour}${shadow ? '!' : ''}${project.length}:${project}${service.length}:${service}${key.length}:${key}${route.length}:${route}${model.length}:${model}${upstream.length}:${upstream}${user.length}:${user}${session}`;
}

/** The line that a call is added to: the hour of its start in `cost.timezone`, and who, where and what. */
export function keyOf(call: Booked, hour: string): LedgerKey {
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

export function toRow(key: LedgerKey, sums: LedgerSums): LedgerRow {
  return Object.assign({}, key, sums);
}

/** What a call adds. One that its client broke off has not failed. */
export function sumsOfCall({ outcome, estimated, tokens, costNanoUsd }: ModelCall): LedgerSums {
  return {
    calls: 1,
    failed_calls: outcome === 'ok' || outcome === 'aborted' ? 0 : 1,
    estimated_calls: estimated ? 1 : 0,
    input_tokens: tokens.input,
    cached_tokens: tokens.cached,
    output_tokens: tokens.output,
    reasoning_tokens: tokens.reasoning,
    saved_tokens: 0,
    cost_nano_usd: BigInt(costNanoUsd ?? 0),
  };
}

const NOTHING: LedgerSums = { ...toLedgerCounts(() => 0), cost_nano_usd: 0n };
export function sumsOfSaved({ tokens }: SavedAnswer): LedgerSums {
  return { ...NOTHING, saved_tokens: tokens };
}

/** Name by name: this is on every call's way. */
export function addTo(row: LedgerSums, added: LedgerSums): void {
  row.calls += added.calls;
  row.failed_calls += added.failed_calls;
  row.estimated_calls += added.estimated_calls;
  row.input_tokens += added.input_tokens;
  row.cached_tokens += added.cached_tokens;
  row.output_tokens += added.output_tokens;
  row.reasoning_tokens += added.reasoning_tokens;
  row.saved_tokens += added.saved_tokens;
  row.cost_nano_usd += added.cost_nano_usd;
}
