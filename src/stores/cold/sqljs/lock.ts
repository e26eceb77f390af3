import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * One process a database. The lock names its holder by pid and by the moment that process began (a pid is given out again, and
 * is 1 in every container); a holder on another host is judged by the file's time, which the holder keeps fresh.
 */
interface Holder {
  pid: number;
  began: string;
  host: string;
  owner: string;
}
const BEAT_MS = 2_000;
const STALE_MS = 10_000;

export interface LockFile {
  release(): void;
}

export async function takeLock(databaseFile: string, owner: string): Promise<LockFile> {
  const file = `${databaseFile}.lock`;
  const mine: Holder = { pid: process.pid, began: processStart(process.pid), host: hostname(), owner };
  // Written aside and linked: the lock appears with its contents or not at all, and only if there is none.
  const aside = `${file}.${process.pid}.${owner}`;
  writeFileSync(aside, `${JSON.stringify(mine)}\n`);
  try {
    while (!link(aside, file)) await removeIfStale(databaseFile, file, aside, mine);
  } finally {
    rmSync(aside, { force: true });
  }
  const beat = setInterval(() => {
    try {
      utimesSync(file, new Date(), new Date());
    } catch {
      // Somebody removed it; the next start will make it anew.
    }
  }, BEAT_MS);
  beat.unref();
  return {
    release() {
      clearInterval(beat);
      if (read(file)?.owner === owner) rmSync(file, { force: true });
    },
  };
}

function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

async function removeIfStale(databaseFile: string, file: string, aside: string, mine: Holder): Promise<void> {
  const holder = read(file);
  if (holder !== undefined && (await alive(file, holder, mine))) {
    throw new Error(
      `${databaseFile} is in use by another process: pid ${holder.pid} on ${holder.host} holds ${file}. Stop that process, give this one another DATABASE_URL, or use PostgreSQL to share one database.`,
    );
  }
  const moved = `${aside}.stale`;
  try {
    renameSync(file, moved);
  } catch {
    return;
  }
  // Between reading and renaming another process may have taken it over: then it is put back.
  if (read(moved)?.owner !== holder?.owner) link(moved, file);
  rmSync(moved, { force: true });
}

async function alive(file: string, holder: Holder, mine: Holder): Promise<boolean> {
  if (holder.owner === mine.owner) return false;
  if (holder.host === mine.host) return isRunning(holder.pid) && (holder.began === '' || holder.began === processStart(holder.pid));
  for (let age = ageMs(file); age !== undefined && age < STALE_MS; age = ageMs(file)) {
    const before = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    await sleep(BEAT_MS + 500);
    if (statSync(file, { throwIfNoEntry: false })?.mtimeMs !== before) return true;
  }
  return false;
}

function read(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}
function ageMs(file: string): number | undefined {
  const modified = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  return modified === undefined ? undefined : Date.now() - modified;
}
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
/** Field 22 of /proc/PID/stat; '' where there is no such file. A zombie holds nothing any more. */
function processStart(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[0] === 'Z' ? 'ended' : (fields[19] ?? '');
  } catch {
    return '';
  }
}
