type Ask = (text: string, values?: readonly unknown[]) => Promise<unknown>;

/**
 * Stores records within one transaction so that one that the database refuses does not take its neighbours along: all at once, and only
 * when that fails each behind a savepoint of its own. Gives the number refused.
 */
export async function storeEach<T>(records: readonly T[], ask: Ask, store: (record: T) => Promise<unknown>): Promise<number> {
  if (
    await stored(ask, async () => {
      for (const record of records) await store(record);
    })
  )
    return 0;
  let refused = 0;
  for (const record of records) if (!(await stored(ask, () => store(record)))) refused += 1;
  return refused;
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
