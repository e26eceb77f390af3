import type { Exchange } from '../contracts/exchange.ts';

/** A limit's `match`: fields of the caller, each a value or a list of values; all must hold. */
export function limitMatches(match: Readonly<Record<string, unknown>>, exchange: Exchange): boolean {
  const { caller, principal } = exchange;
  const values: Record<string, string | undefined> = {
    service_type: caller?.service,
    service: caller?.service,
    project: caller?.project,
    user_level: caller?.userLevel,
    priority: caller?.priority,
    user: caller?.user,
    key: principal?.id,
  };
  return Object.entries(match).every(([field, wanted]) => {
    const value = values[field];
    return value !== undefined && [wanted].flat().includes(value);
  });
}
