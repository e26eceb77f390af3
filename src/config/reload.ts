import type { LoadedConfig } from './load.ts';
import { ConfigError, formatProblem } from './problems.ts';
import { warnOfTakenAtStart } from './taken-at-start.ts';
import { type ConfigWatcher, type WatchOptions, watchConfig } from './watch.ts';

export interface ReloadResult {
  outcome: 'ok' | 'refused';
  /** What asked for it. */
  cause: 'file' | 'signal' | 'admin';
  warnings: readonly string[];
  /** One line a mistake, with its place; empty when the configuration was taken. */
  mistakes: readonly string[];
}
export interface ReloaderDeps extends WatchOptions {
  current: LoadedConfig;
  /** Reads and validates anew; the key that was made for this run is handed on, so that nobody is locked out. */
  load(generatedKey: string | undefined): LoadedConfig;
  /** Makes the new generation and swaps it in whole; throws when it cannot be made, and the old one stays. */
  apply(loaded: LoadedConfig): void | Promise<void>;
  /** Hears of every reload, taken or refused: for the log and the metric. */
  onReload(result: ReloadResult): void;
}
export interface Reloader {
  /** Watches the files until `close`. */
  watch(): void;
  /** One after the other, whoever asks. Never rejects. */
  reload(cause: ReloadResult['cause']): Promise<ReloadResult>;
  close(): void;
}

/** Validated first, swapped in whole, or refused. */
export function createReloader(deps: ReloaderDeps): Reloader {
  const started = deps.current.config;
  let current = deps.current;
  let queue: Promise<unknown> = Promise.resolve();
  let watcher: ConfigWatcher | undefined;

  async function run(cause: ReloadResult['cause']): Promise<ReloadResult> {
    const result: ReloadResult = { outcome: 'ok', cause, warnings: [], mistakes: [] };
    try {
      const loaded = deps.load(current.generatedKey);
      await deps.apply(loaded);
      current = loaded;
      watcher?.follow(loaded.files);
      result.warnings = [...loaded.warnings, ...warnOfTakenAtStart(started, loaded.config)];
    } catch (error) {
      result.outcome = 'refused';
      result.mistakes = error instanceof ConfigError ? error.problems.map(formatProblem) : [error instanceof Error ? error.message : String(error)];
    }
    deps.onReload(result);
    return result;
  }
  // Two saves in a row must not swap in the older one last.
  function reload(cause: ReloadResult['cause']): Promise<ReloadResult> {
    const next = queue.then(() => run(cause));
    queue = next.catch(() => {});
    return next;
  }
  return {
    watch() {
      watcher ??= watchConfig(current.files, () => void reload('file'), deps);
    },
    reload,
    close: () => watcher?.close(),
  };
}
