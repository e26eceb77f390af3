import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { LedgerKey, LedgerRow } from '../../../contracts/cold-store.ts';
import { LEDGER_COUNTS, type LedgerSums, toLedgerCounts } from '../../../contracts/ledger-counts.ts';

/**
 * Calls that are booked and not in the database yet: a file a batch beside it, `hermes.db.calls-ID`, appended to in the thread that
 * books, without fsync. What the kernel has outlives `kill -9`; a power cut may take the newest batch. A line of the books is
 * written out when a batch first has it (`{…}`), and after that named by its number (`[number, counts…]`).
 */
export interface UnwrittenCalls {
  note(batchId: string, line: string, key: LedgerKey, added: LedgerSums): void;
  /** The batch is in the database. */
  written(batchId: string): void;
  /** Batches that a process left when it was killed. */
  left(): { batchId: string; rows: LedgerRow[] }[];
}

/** The store is away for long, or the disk is full: what comes then lives in memory alone. */
const MOST_BYTES = 64 * 2 ** 20;

interface OpenFile {
  batchId: string;
  descriptor: number;
  bytes: number;
  lines: Map<string, number>;
  /** Noted and not in the file yet. */
  text: string;
}

export function createUnwrittenCalls(databaseFile: string, failed: (error: unknown) => void): UnwrittenCalls {
  const prefix = `${databaseFile}.calls-`;
  let open: OpenFile | undefined;
  let told = false;
  let scheduled = false;
  const tell = (error: unknown): void => {
    if (!told) failed(error);
    told = true;
  };
  /** What is noted in one go (requests go in step) is written in one. What the disk did not take waits for the next write: numbers of lines count from the first. */
  const write = (): void => {
    scheduled = false;
    if (open === undefined || open.text === '') return;
    const bytes = Buffer.from(open.text);
    try {
      if (writeSync(open.descriptor, bytes) < bytes.length) throw new Error('the disk took a part only');
      open.bytes += bytes.length;
      open.text = '';
      told = false;
    } catch (error) {
      tell(error);
      cutBack(open);
    }
  };
  const shut = (): void => {
    write();
    if (open !== undefined) closeSync(open.descriptor);
    open = undefined;
  };
  const append = (batchId: string, line: string, key: LedgerKey, added: LedgerSums): void => {
    if (open?.batchId !== batchId) {
      shut();
      open = { batchId, descriptor: openSync(prefix + batchId, 'a', 0o600), bytes: 0, lines: new Map(), text: '' };
    }
    if (open.bytes + open.text.length > MOST_BYTES) return;
    if (!scheduled) queueMicrotask(write);
    scheduled = true;
    let number = open.lines.get(line);
    if (number === undefined) {
      number = open.lines.size;
      open.lines.set(line, number);
      open.text += `${JSON.stringify(toKey(key))}\n`;
    }
    open.text += `[${number},${toNumbers(added)}]\n`;
  };
  return {
    note(batchId, line, key, added) {
      try {
        append(batchId, line, key, added);
      } catch (error) {
        tell(error);
      }
    },
    written(batchId) {
      if (open?.batchId === batchId) shut();
      rmSync(prefix + batchId, { force: true });
    },
    left() {
      const names = readdirSync(dirname(databaseFile)).filter((name) => name.startsWith(basename(prefix)));
      return names.map((name) => ({
        batchId: name.slice(basename(prefix).length),
        rows: parseCalls(readFileSync(join(dirname(databaseFile), name), 'utf8')),
      }));
    },
  };
}

/** Half a line would take along what follows it. */
function cutBack({ descriptor, bytes }: OpenFile): void {
  try {
    ftruncateSync(descriptor, bytes);
  } catch {
    // Reading ends at what is no line.
  }
}

function toKey({ hour, project, service, user, session, key, route, model, upstream, shadow }: LedgerKey): LedgerKey {
  return { hour, project, service, user, session, key, route, model, upstream, shadow };
}

/** In the order of `LEDGER_COUNTS`, the money last. */
function toNumbers(added: LedgerSums): string {
  let text = '';
  for (const name of LEDGER_COUNTS) text += `${added[name]},`;
  return `${text}${added.cost_nano_usd}`;
}

/** One count less was written by the versions before `saved_tokens`. */
const LINE = /^\[\d+(?:,-?\d+){8,9}\]$/;

/** Up to what is no line: a full disk, or a power cut, ended the file there. */
function parseCalls(text: string): LedgerRow[] {
  const rows: LedgerRow[] = [];
  for (const line of text.split('\n').slice(0, -1)) {
    if (line.startsWith('{')) {
      const key = parseKey(line);
      if (key === undefined) break;
      rows.push({ ...key, ...toLedgerCounts(() => 0), cost_nano_usd: 0n });
    } else {
      const [number, ...counts] = LINE.test(line) ? line.slice(1, -1).split(',') : [];
      const row = rows[Number(number)];
      const cost = counts.pop();
      if (row === undefined || cost === undefined) break;
      for (const [at, name] of LEDGER_COUNTS.entries()) row[name] += Number(counts[at] ?? 0);
      row.cost_nano_usd += BigInt(cost);
    }
  }
  return rows;
}
function parseKey(line: string): LedgerKey | undefined {
  try {
    return JSON.parse(line) as LedgerKey;
  } catch {
    return undefined;
  }
}
