import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cpuSeconds, rssMb } from './process-usage.ts';
import type { Server } from './servers.ts';
import { scratch } from './servers.ts';

const run = promisify(execFile);

export interface Load {
  path: string;
  body: string;
  headers: Record<string, string>;
  connections: number;
  /** More of wrk's script: what differs from request to request. */
  lua?: string;
}
export interface Measured {
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  errors: number;
  /** CPU of the server's processes, user and system, in microseconds a request. */
  cpuMicros: number;
  rssMb: number;
}

/** As many requests as it takes: one run of wrk against a server. */
export async function measure(server: Server, load: Load, seconds: number): Promise<Measured> {
  const script = join(scratch(), 'request.lua');
  const headers = Object.entries(load.headers).map(([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`);
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = [==[${load.body}]==]\n${headers.join('\n')}\n${load.lua ?? ''}\n`);
  const before = cpuSeconds(server.pid);
  const address = `http://127.0.0.1:${server.port}${load.path}`;
  const { stdout } = await run('wrk', ['-t1', `-c${load.connections}`, `-d${seconds}s`, '--latency', '--timeout', '10s', '-s', script, address]);
  const cpu = cpuSeconds(server.pid) - before;
  const total = Number(/(\d+) requests in/.exec(stdout)?.[1] ?? 0);
  const failed = Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0);
  const socket = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(stdout)?.slice(1) ?? [];
  const percentile = (share: number): number => toMs(new RegExp(`^\\s+${share}%\\s+(\\S+)`, 'm').exec(stdout)?.[1] ?? '');
  return {
    requests: total,
    requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1] ?? 0),
    p50Ms: percentile(50),
    p90Ms: percentile(90),
    p99Ms: percentile(99),
    errors: socket.reduce((sum, count) => sum + Number(count), failed),
    cpuMicros: total === 0 ? 0 : (cpu * 1e6) / total,
    rssMb: rssMb(server.pid),
  };
}

function toMs(text: string): number {
  const [, value, unit] = /([\d.]+)(us|ms|s|m)/.exec(text) ?? [];
  return Number(value) * ({ us: 0.001, ms: 1, s: 1000, m: 60_000 }[unit ?? 'ms'] ?? 1);
}
