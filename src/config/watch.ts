import { createHash } from 'node:crypto';
import { type FSWatcher, readFileSync, realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';

export interface ConfigWatcher {
  /** Other files from now on: a configuration that was taken may name others. */
  follow(files: readonly string[]): void;
  close(): void;
}
export interface WatchOptions {
  /** Quiet time after a change, in milliseconds: editors write in several steps. */
  debounceMs?: number;
  /** For mounts that send no events. */
  pollMs?: number;
}

/**
 * Calls `onChange` when the content of the files has changed. Editors write by rename and Kubernetes swaps a link, so the folders are
 * watched and the contents compared; a file that is gone for a moment is between an editor's two steps, not a configuration.
 */
export function watchConfig(files: readonly string[], onChange: () => void, options: WatchOptions = {}): ConfigWatcher {
  let followed = files;
  let seen = fingerprint(followed);
  let watchers: FSWatcher[] = [];
  let debounce: NodeJS.Timeout | undefined;

  const look = () => {
    const now = fingerprint(followed);
    if (now === undefined || now === seen) return;
    seen = now;
    onChange();
  };
  const soon = () => {
    clearTimeout(debounce);
    debounce = setTimeout(look, options.debounceMs ?? 100);
    debounce.unref();
  };
  const unwatch = () => {
    for (const watcher of watchers) watcher.close();
  };
  const open = () => {
    unwatch();
    watchers = foldersOf(followed).flatMap((folder) => {
      try {
        return [watch(folder, { persistent: false }, soon).on('error', () => {})];
      } catch {
        return []; // No events here (too many watches, a network file system): the poll sees it.
      }
    });
  };
  open();
  const poll = setInterval(look, options.pollMs ?? 5000);
  poll.unref();

  return {
    follow(next) {
      if (next.join('\0') === followed.join('\0')) return;
      followed = next;
      seen = fingerprint(followed);
      open();
    },
    close() {
      clearTimeout(debounce);
      clearInterval(poll);
      unwatch();
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
