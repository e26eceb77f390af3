import { readdirSync, readFileSync } from 'node:fs';

/** A process and those that it has started. */
function treeOf(pid: number): number[] {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '));
    return [pid, ...children.filter((child) => child !== '').flatMap((child) => treeOf(Number(child)))];
  } catch {
    return [];
  }
}
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** User and system time of a process and its children, in seconds. Source: proc(5), fields 14 and 15; 100 ticks a second. */
export function cpuSeconds(pid: number): number {
  return treeOf(pid).reduce((sum, each) => {
    const fields = read(each, 'stat').split(') ')[1]?.split(' ') ?? [];
    return sum + (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100;
  }, 0);
}
export function rssMb(pid: number): number {
  return treeOf(pid).reduce((sum, each) => sum + Number(/VmRSS:\s+(\d+)/.exec(read(each, 'status'))?.[1] ?? 0) / 1024, 0);
}
