import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

function findLibrary(): string | undefined {
  const folders = [
    '/usr/lib',
    ...(existsSync('/usr/lib') ? readdirSync('/usr/lib').filter((name) => name.endsWith('-linux-gnu')) : []).map((name) => join('/usr/lib', name)),
  ];
  return folders.map((folder) => join(folder, 'faketime/libfaketimeMT.so.1')).find((file) => existsSync(file));
}

let said = false;
/** Undefined: a process's clock can be stepped (libfaketime). Else why not; said once, loudly. */
export function clockMissing(): string | undefined {
  if (findLibrary() !== undefined) return undefined;
  if (!said) process.stderr.write('\n!!! SKIPPED: clocks that step: libfaketime not found: run scripts/services, or apt-get install faketime\n\n');
  said = true;
  return 'libfaketime not found';
}

export interface SteppedClock {
  /** For the process: its wall clock is that of the machine and `step`; timers and `performance.now` go on as they are. */
  env: Record<string, string>;
  /** Seconds; noticed within a second. */
  step(seconds: number): void;
}

export function createClock(folder: string): SteppedClock {
  const file = join(folder, 'clock');
  const step = (seconds: number): void => writeFileSync(file, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`);
  step(0);
  const env = {
    LD_PRELOAD: findLibrary() ?? '',
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  return { env, step };
}
