import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';

/**
 * The write-ahead journal: records of `length u32 | checksum u32 | number u64 | text`, little-endian, behind one line that names
 * the format. The checksum covers number and text. A file that ends within a record was cut by a crash before that record's
 * fsync, so nobody was told that it is stored.
 */
const MAGIC = Buffer.from('hermes journal 1\n');
/** The length of a journal without a record. */
export const EMPTY_JOURNAL = MAGIC.length;
const HEADER = 16;
const MAX_RECORD = 1 << 30;

export interface JournalRecord {
  number: number;
  text: string;
}
export interface JournalContents {
  records: JournalRecord[];
  /** Bytes that are no whole record. */
  tornBytes: number;
  /** Whole records follow the unreadable place: the disk damaged it, no crash cut it. */
  damaged: boolean;
}

/** The journals beside a database, oldest first; a checkpoint begins the next one. */
export function listJournals(databaseFile: string): { file: string; index: number }[] {
  const start = `${basename(databaseFile)}.journal-`;
  return readdirSync(dirname(databaseFile))
    .filter((name) => name.startsWith(start) && /^\d+$/.test(name.slice(start.length)))
    .map((name) => ({ file: join(dirname(databaseFile), name), index: Number(name.slice(start.length)) }))
    .sort((a, b) => a.index - b.index);
}
export function journalFile(databaseFile: string, index: number): string {
  return `${databaseFile}.journal-${index}`;
}

export function readJournal(file: string): JournalContents {
  const bytes = readFileSync(file);
  const records: JournalRecord[] = [];
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) return { records, tornBytes: bytes.length, damaged: bytes.length > MAGIC.length };
  let at = MAGIC.length;
  for (let length = recordLength(bytes, at); length > 0; length = recordLength(bytes, at)) {
    records.push({ number: Number(bytes.readBigUInt64LE(at + 8)), text: bytes.toString('utf8', at + HEADER, at + length) });
    at += length;
  }
  return { records, tornBytes: bytes.length - at, damaged: recordFollows(bytes, at + 1) };
}
/** 0: no whole record begins here. */
function recordLength(bytes: Buffer, at: number): number {
  if (at + HEADER > bytes.length) return 0;
  const length = HEADER + bytes.readUInt32LE(at);
  if (length > MAX_RECORD || at + length > bytes.length) return 0;
  return crc32(bytes.subarray(at + 8, at + length)) === bytes.readUInt32LE(at + 4) ? length : 0;
}
function recordFollows(bytes: Buffer, from: number): boolean {
  for (let at = from; at + HEADER < bytes.length; at += 1) {
    // Numbers stay below 2^48 for ever, so these two zero bytes spare most of the checksums; an empty record is never written.
    if (bytes.readUInt16LE(at + 14) === 0 && bytes.readUInt32LE(at) > 0 && recordLength(bytes, at) > 0) return true;
  }
  return false;
}

export interface JournalWriter {
  readonly file: string;
  /** Durable bytes. */
  length(): number;
  /** Writes and fsyncs; when it throws, none of these records is in the journal, or every later call throws as well. */
  commit(records: readonly JournalRecord[]): void;
  close(): void;
}

export function createJournal(file: string): JournalWriter {
  const descriptor = openSync(file, 'wx');
  let length = 0;
  let torn = false;
  const append = (bytes: Buffer): void => {
    // A failed write may have left a part behind: a later record behind it would be unreadable, or the failed one come back to life.
    if (torn) {
      ftruncateSync(descriptor, length);
      fsyncSync(descriptor);
      torn = false;
    }
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written, bytes.length - written, length + written);
      fdatasyncSync(descriptor);
    } catch (error) {
      torn = true;
      throw error;
    }
    length += bytes.length;
  };
  append(MAGIC);
  syncFolder(dirname(file));
  return {
    file,
    length: () => length,
    commit: (records) => append(Buffer.concat(records.map(toRecord))),
    close: () => closeSync(descriptor),
  };
}
function toRecord({ number, text }: JournalRecord): Buffer {
  const size = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(HEADER + size);
  bytes.writeUInt32LE(size, 0);
  bytes.writeBigUInt64LE(BigInt(number), 8);
  bytes.write(text, HEADER);
  bytes.writeUInt32LE(crc32(bytes.subarray(8)), 4);
  return bytes;
}

/** A new or renamed file is only there after a power cut when its folder was synced too. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
