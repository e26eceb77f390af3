import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Processors that this process may use: of the machine, or what a container is limited to (at least 1). */
export function usableProcessors(read: (file: string) => string = (file) => readFileSync(file, 'utf8'), processors = availableParallelism()): number {
  const quota = quotaOf(read);
  return quota === undefined ? processors : Math.max(1, Math.min(processors, Math.ceil(quota)));
}

/** Control groups, version 2 and 1: microseconds of processor time in a period; `max` and -1 are no limit. */
function quotaOf(read: (file: string) => string): number | undefined {
  const text = (file: string): string => {
    try {
      return read(`/sys/fs/cgroup/${file}`).trim();
    } catch {
      return '';
    }
  };
  const [limit, period] = text('cpu.max').split(' ').map(Number);
  const [oldLimit, oldPeriod] = [Number(text('cpu/cpu.cfs_quota_us')), Number(text('cpu/cpu.cfs_period_us'))];
  if (limit && period) return limit / period;
  return oldLimit > 0 && oldPeriod > 0 ? oldLimit / oldPeriod : undefined;
}
