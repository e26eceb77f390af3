import { spawn } from 'node:child_process';
import { type BenchConfig, hermesConfig, type Upstreams } from './hermes-config.ts';
import { cpuSeconds, rssMb } from './process-usage.ts';
import { root, type Server } from './servers.ts';
import type { StreamsFindings, StreamsPlan } from './stream-clients.ts';
import type { Load } from './wrk.ts';

export const STREAMS = 1000;
export const EVERY_MS = 50;
const RAMP_MS = 1000;
const SAMPLE_MS = 250;

/** Where the upstream gives a stream of so many seconds. */
export function slowPath(seconds: number): string {
  return `/events/${Math.round((seconds * 1000) / EVERY_MS)}/${EVERY_MS}`;
}
/** The models of the bench, `events_model` being that slow. */
export function slowModels(upstreams: Upstreams, seconds: number): BenchConfig['models'] {
  const address = `http://127.0.0.1:${upstreams.paced.port}${slowPath(seconds)}/v1`;
  return hermesConfig(upstreams).models.map((model) => (model.id === 'events_model' ? { ...model, api_base: address } : model));
}

export interface SlowMeasured extends StreamsFindings {
  /** The most of it. */
  rssMb: number;
  /** Of one core. */
  cpuShare: number;
}

/** All streams at once, to their ends. */
export async function measureStreams(server: Server, { path, headers, body }: Load): Promise<SlowMeasured> {
  const plan: StreamsPlan = { port: server.port, path, headers, body, streams: STREAMS, rampMs: RAMP_MS };
  const program = ['--import', 'tsx', 'bench/parts/stream-clients.ts', JSON.stringify(plan)];
  const child = spawn(process.execPath, program, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  const [began, before] = [performance.now(), cpuSeconds(server.pid)];
  let most = 0;
  const sampler = setInterval(() => (most = Math.max(most, rssMb(server.pid))), SAMPLE_MS);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(sampler);
  if (code !== 0) throw new Error(`the clients ended with ${String(code)}`);
  const seconds = (performance.now() - began) / 1000;
  return { ...(JSON.parse(said) as StreamsFindings), rssMb: most, cpuShare: (cpuSeconds(server.pid) - before) / seconds };
}
