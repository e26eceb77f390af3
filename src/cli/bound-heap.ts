import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Half-spaces of 8 MB. V8 would go to 16 MB: 16 MB more of memory for a few collections less. */
const WANTED_BYTES = 2 * 8 * 1024 ** 2;
const LOOK_MS = 100;

/**
 * A gateway's heap is small and its garbage short-lived; V8's own policy would keep twice of what lives, for throughput that is
 * not gained here. A program cannot give itself `--max-semi-space-size=8`, but these two are read at every growth. Call what it
 * gives once the start is over: until then the young generation stays at its smallest, for what is loaded at a start lives on.
 */
export function boundHeap(): () => void {
  setFlagsFromString('--heap-growing-percent=30');
  setFlagsFromString('--semi-space-growth-factor=1');
  return () => {
    setFlagsFromString('--semi-space-growth-factor=2');
    const look = setInterval(() => {
      const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
      if (size < WANTED_BYTES) return;
      setFlagsFromString('--semi-space-growth-factor=1');
      clearInterval(look);
    }, LOOK_MS).unref();
  };
}
