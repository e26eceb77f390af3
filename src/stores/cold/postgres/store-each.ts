type Ask = (text: string, values?: readonly unknown[]) => Promise<unknown>;

/** So many records go in one statement: few round trips, and no statement without bounds. */
const CHUNK = 250;

/**
 * Stores records within one transaction so that one that the database refuses does not take its neighbours along: many at once, and only
 * when that fails each behind a savepoint of its own. Gives the number refused.
 */
export async function storeEach<T>(records: readonly T[], ask: Ask, store: (some: readonly T[]) => Promise<unknown>): Promise<number> {
  let refused = 0;
  for (let from = 0; from < records.length; from += CHUNK) {
    const chunk = records.slice(from, from + CHUNK);
    if (await stored(ask, () => store(chunk))) continue;
    for (const record of chunk) if (!(await stored(ask, () => store([record])))) refused += 1;
  }
  return refused;
}

/** The columns of rows, as `unnest` takes them. */
export function toColumns<C>(rows: readonly (readonly C[])[]): (C | undefined)[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
}

async function stored(ask: Ask, work: () => Promise<unknown>): Promise<boolean> {
  await ask('SAVEPOINT record');
  try {
    await work();
  } catch {
    // On a broken connection this rejects, and the whole transaction with it.
    await ask('ROLLBACK TO record');
    return false;
  }
  await ask('RELEASE record');
  return true;
}
