/** What a test may say of time on a machine that is busy, slow, or shared: an order, a ratio, or a bound far from what it tells apart. */

const TICK_MS = 10;

export interface Stopwatch {
  /** Milliseconds, but a time in which this process stood still counts as one tick: what the machine held up nobody waited for. */
  ms(): number;
  stop(): number;
}
export function startStopwatch(): Stopwatch {
  let ticks = 0;
  const timer = setInterval(() => {
    ticks++;
  }, TICK_MS);
  timer.unref();
  const ms = (): number => ticks * TICK_MS;
  return {
    ms,
    stop() {
      clearInterval(timer);
      return ms();
    },
  };
}

/** Whether `work` waits for anything: a timer or a socket turns the event loop, mere computing never does, however slow it is. */
export async function waits(work: () => unknown): Promise<boolean> {
  let turned = false;
  const next = setImmediate(() => {
    turned = true;
  });
  await work();
  clearImmediate(next);
  return turned;
}

/** CPU time of this process, so that what else runs on the machine does not count. Milliseconds. */
async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** How many times the reference the work costs: the best of `rounds` each, by turns, after one to warm both up. */
export async function costIn(reference: () => unknown, work: () => unknown, rounds = 3): Promise<number> {
  await reference();
  await work();
  const best = { reference: Number.POSITIVE_INFINITY, work: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round++) {
    best.reference = Math.min(best.reference, await cpuOf(reference));
    best.work = Math.min(best.work, await cpuOf(work));
  }
  return best.work / best.reference;
}
