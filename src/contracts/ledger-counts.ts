/** What the books sum up, beside money, in the order of reports. */
export const LEDGER_COUNTS = [
  'calls',
  'failed_calls',
  'estimated_calls',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'reasoning_tokens',
  /** Of answers that were given again out of the answer cache, input and output, which cost nothing. */
  'saved_tokens',
] as const;
type LedgerCount = (typeof LEDGER_COUNTS)[number];
export type LedgerCounts = Record<LedgerCount, number>;
/** What is added up: counts, and money exactly. */
export interface LedgerSums extends LedgerCounts {
  cost_nano_usd: bigint;
}

export function toLedgerCounts(count: (name: LedgerCount, index: number) => number): LedgerCounts {
  return Object.fromEntries(LEDGER_COUNTS.map((name, index) => [name, count(name, index)])) as LedgerCounts;
}
