import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { LedgerRow } from '../../../contracts/cold-store.ts';
import { LEDGER_COUNTS, type LedgerCounts, toLedgerCounts } from '../../../contracts/ledger-counts.ts';

/**
 * Calls that are booked and not in the database yet: a file a batch beside it, `hermes.db.calls-ID`, appended to in the thread that
 * books, without fsync. What the kernel has outlives `kill -9`; a power cut may take the newest batch. A line of the books is
 * written out when a batch first has it (`{…}`), and after that named by its number (`[number, counts…]`).
 */
export interface UnwrittenCalls {
  note(batchId: string, line: string, call: LedgerRow): void;
  /** The batch is in the database. */
  written(batchId: string): void;
  /** Batches that a process left when it was killed. */
  left(): { batchId: string; rows: LedgerRow[] }[];
}

/** The store is away for long, or the disk is full: what comes then lives in memory alone. */
const MOST_BYTES = 64 * 2 ** 20;
type Key = Omit<LedgerRow, keyof LedgerCounts | 'cost_nano_usd'>;

interface OpenFile {
  batchId: string;
  descriptor: number;
  bytes: number;
  lines: Map<string, number>;
}

export function createUnwrittenCalls(databaseFile: string, failed: (error: unknown) => void): UnwrittenCalls {
  const prefix = `${databaseFile}.calls-`;
  let open: OpenFile | undefined;
  let told = false;
  const shut = (): void => {
    if (open !== undefined) closeSync(open.descriptor);
    open = undefined;
  };
  const append = (batchId: string, line: string, call: LedgerRow): void => {
    if (open?.batchId !== batchId) {
      shut();
      open = { batchId, descriptor: openSync(prefix + batchId, 'a', 0o600), bytes: 0, lines: new Map() };
    }
    if (open.bytes > MOST_BYTES) return;
    let text = '';
    let number = open.lines.get(line);
    if (number === undefined) {
      number = open.lines.size;
      open.lines.set(line, number);
      text = `${JSON.stringify(toKey(call))}\n`;
    }
    text += `[${number},${LEDGER_COUNTS.map((name) => call[name]).join()},${call.cost_nano_usd}]\n`;
    open.bytes += writeSync(open.descriptor, text);
  };
  return {
    note(batchId, line, call) {
      try {
        append(batchId, line, call);
        told = false;
      } catch (error) {
        if (!told) failed(error);
        told = true;
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

function toKey({ hour, project, service, user, session, key, route, model, upstream, shadow }: LedgerRow): Key {
  return { hour, project, service, user, session, key, route, model, upstream, shadow };
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
function parseKey(line: string): Key | undefined {
  try {
    return JSON.parse(line) as Key;
  } catch {
    return undefined;
  }
}
