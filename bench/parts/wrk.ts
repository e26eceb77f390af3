import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Server } from './servers.ts';
import { scratch } from './servers.ts';

const run = promisify(execFile);

export interface Load {
  path: string;
  body: string;
  headers: Record<string, string>;
  connections: number;
  seconds: number;
  /** More of wrk's script: what differs from request to request. */
  lua?: string;
}
export interface Measured {
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  errors: number;
  /** CPU of the server's process, user and system, in microseconds a request. */
  cpuMicros: number;
  rssMb: number;
}

/** User and system time of a process, in seconds. Source: proc(5), fields 14 and 15; 100 ticks a second. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}
function toMs(text: string): number {
  const [, value, unit] = /([\d.]+)(us|ms|s|m)/.exec(text) ?? [];
  return Number(value) * ({ us: 0.001, ms: 1, s: 1000, m: 60_000 }[unit ?? 'ms'] ?? 1);
}

/** One run of wrk against a server. */
export async function measure(server: Server, load: Load): Promise<Measured> {
  const script = join(scratch(), 'request.lua');
  const headers = Object.entries(load.headers).map(([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`);
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = [==[${load.body}]==]\n${headers.join('\n')}\n${load.lua ?? ''}\n`);
  const before = cpuSeconds(server.pid);
  const { stdout } = await run('wrk', [
    '-t',
    '1',
    '-c',
    String(load.connections),
    '-d',
    `${load.seconds}s`,
    '--latency',
    '--timeout',
    '10s',
    '-s',
    script,
    `http://127.0.0.1:${server.port}${load.path}`,
  ]);
  const cpu = cpuSeconds(server.pid) - before;
  const total = Number(/(\d+) requests in/.exec(stdout)?.[1] ?? 0);
  const failed = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? '0';
  const socket = (/Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(stdout)?.slice(1) ?? []).reduce(
    (sum, count) => sum + Number(count),
    0,
  );
  return {
    requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? 0),
    p50Ms: toMs(/^\s+50%\s+(\S+)/m.exec(stdout)?.[1] ?? ''),
    p99Ms: toMs(/^\s+99%\s+(\S+)/m.exec(stdout)?.[1] ?? ''),
    errors: Number(failed) + socket,
    cpuMicros: total === 0 ? 0 : (cpu * 1e6) / total,
    rssMb: rssMb(server.pid),
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
