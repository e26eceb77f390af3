import { createHash } from 'node:crypto';
import { type FSWatcher, readFileSync, realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { LoadedConfig } from './load.ts';
import { ConfigError, type ConfigProblem, formatProblem } from './problems.ts';

export interface ReloadResult {
  outcome: 'ok' | 'refused';
  /** What asked for it. */
  cause: 'file' | 'signal' | 'admin';
  warnings: readonly string[];
  /** One line a mistake; empty when it was taken. */
  mistakes: readonly string[];
  /** With places, when the file itself was wrong. */
  problems: readonly ConfigProblem[];
}
export interface ReloaderDeps {
  current: LoadedConfig;
  /** Reads and validates anew; the generated key of this run is handed on. */
  load(generatedKey: string | undefined): LoadedConfig;
  /** Makes the new generation and swaps it in whole; throws when it cannot be made, and the old one stays. */
  apply(loaded: LoadedConfig): void | Promise<void>;
  /** Hears of every reload, taken or refused: log and metric. */
  onReload(result: ReloadResult): void;
  debounceMs?: number;
  pollMs?: number;
}
export interface Reloader {
  /** Watches the files until `close`. */
  watch(): void;
  /** One after the other, whoever asks. */
  reload(cause: ReloadResult['cause']): Promise<ReloadResult>;
  close(): void;
}

/** Editors write by rename, and Kubernetes swaps a link: so folders are watched and contents compared. The poll is for mounts without events. */
export function createReloader(deps: ReloaderDeps): Reloader {
  let current = deps.current;
  let tried = fingerprint(current.files);
  let watchers: FSWatcher[] = [];
  let debounce: NodeJS.Timeout | undefined;
  let poll: NodeJS.Timeout | undefined;
  let queue: Promise<unknown> = Promise.resolve();
  let closed = false;

  const look = () => {
    const now = fingerprint(current.files);
    // A file that is gone for a moment is between an editor's two steps, not a configuration.
    if (closed || now === undefined || now === tried) return;
    tried = now;
    void reload('file');
  };
  const soon = () => {
    clearTimeout(debounce);
    debounce = setTimeout(look, deps.debounceMs ?? 100);
    debounce.unref();
  };
  const stopWatching = () => {
    for (const watcher of watchers) watcher.close();
    watchers = [];
  };
  const startWatching = () => {
    stopWatching();
    watchers = foldersOf(current.files).flatMap((folder) => {
      try {
        return [watch(folder, { persistent: false }, soon).on('error', () => {})];
      } catch {
        return []; // No events here (too many watches, a network file system): the poll sees it.
      }
    });
  };

  async function run(cause: ReloadResult['cause']): Promise<ReloadResult> {
    tried = fingerprint(current.files) ?? tried;
    const result: ReloadResult = { outcome: 'ok', cause, warnings: [], mistakes: [], problems: [] };
    try {
      const loaded = deps.load(current.generatedKey);
      await deps.apply(loaded);
      const moved = loaded.files.join('\0') !== current.files.join('\0');
      current = loaded;
      if (moved) tried = fingerprint(current.files);
      if (moved && poll) startWatching();
      result.warnings = loaded.warnings;
    } catch (error) {
      result.outcome = 'refused';
      result.problems = error instanceof ConfigError ? error.problems : [];
      result.mistakes = error instanceof ConfigError ? error.problems.map(formatProblem) : [error instanceof Error ? error.message : String(error)];
    }
    deps.onReload(result);
    return result;
  }
  function reload(cause: ReloadResult['cause']): Promise<ReloadResult> {
    const next = queue.then(() => run(cause));
    queue = next.catch(() => {});
    return next;
  }

  return {
    watch() {
      startWatching();
      poll = setInterval(look, deps.pollMs ?? 5000);
      poll.unref();
    },
    reload,
    close() {
      closed = true;
      clearTimeout(debounce);
      clearInterval(poll);
      stopWatching();
    },
  };
}

function foldersOf(files: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const file of files) {
    folders.add(dirname(file));
    try {
      folders.add(dirname(realpathSync(file)));
    } catch {
      // Not there now; its folder is watched.
    }
  }
  return [...folders];
}
function fingerprint(files: readonly string[]): string | undefined {
  const hash = createHash('sha256');
  try {
    for (const file of files) hash.update(readFileSync(file)).update('\0');
  } catch {
    return undefined;
  }
  return hash.digest('hex');
}
