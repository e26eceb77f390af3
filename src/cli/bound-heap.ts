import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Half-spaces of 8 MB. V8 would go to 16 MB: more memory that does not come back, for a few collections less. */
const WANTED_BYTES = 2 * 8 * 1024 ** 2;
const LOOK_MS = 100;
/** Of the event loop's time. */
const BUSY = 0.5;

/**
 * A gateway's heap is small and its garbage short-lived; V8's own policy would keep twice of what lives, for throughput that is
 * not gained here. A program cannot give itself `--max-semi-space-size=8`, but these two are read at every growth. Call what it
 * gives once the start is over: until then the young generation stays at its smallest, for what is loaded at a start lives on.
 * From then on it is looked at for good: V8 makes it small again whenever little happens for some seconds, and under load it must grow
 * from there, or all that is in flight survives collection after collection. Where there is little to do, it stays small.
 */
export function boundHeap(): () => void {
  setFlagsFromString('--heap-growing-percent=60');
  setFlagsFromString('--semi-space-growth-factor=1');
  let factor = 1;
  let before = performance.eventLoopUtilization();
  const look = (): void => {
    const now = performance.eventLoopUtilization();
    const busy = performance.eventLoopUtilization(now, before).utilization > BUSY;
    before = now;
    const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
    const wanted = busy && size < WANTED_BYTES ? 2 : 1;
    if (wanted === factor) return;
    factor = wanted;
    setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  };
  return () => {
    look();
    setInterval(look, LOOK_MS).unref();
  };
}
