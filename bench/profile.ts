// npm run profile [-- --load json|sse|sse-events|slow-streams|body-100k|anthropic|anthropic-sse|session|session-redis|session-sse] [-- --seconds 10]: what the built gateway spends its time on.
// Writes a CPU profile (for Chrome's developer tools, speedscope …) and a flame graph into .bench/, and prints the functions that take most.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type CpuProfile, toFrames, toFunctions } from './parts/cpu-profile.ts';
import { toFlameGraph } from './parts/flame-graph.ts';
import { Fleet } from './parts/fleet.ts';
import { openInspector } from './parts/inspector.ts';
import { chatBody, fillSessions, load, namedLoad } from './parts/loads.ts';
import { table } from './parts/rounds.ts';
import { runMain } from './parts/run-main.ts';
import { freePort, root, type Server } from './parts/servers.ts';
import { measureStreams, slowModels } from './parts/slow-load.ts';
import { type Load, measure } from './parts/wrk.ts';

/** Some 20,000 requests, until all that they run is compiled. */
const WARM_UP_SECONDS = 5;
const SAMPLE_MICROS = 200;
const MOST = 25;

interface Done {
  requests: number;
  errors: number;
}
async function saturate(server: Server, sent: Load, seconds: number): Promise<Done> {
  const { requestsPerSecond, errors } = await measure(server, sent, seconds);
  return { requests: requestsPerSecond * seconds, errors };
}
async function stream(server: Server, sent: Load): Promise<Done> {
  const { streams, errors } = await measureStreams(server, sent);
  return { requests: streams, errors };
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { load: { type: 'string', default: 'json' }, seconds: { type: 'string', default: '10' } } });
  const { sent, session } = namedLoad(values.load);
  const fleet = await Fleet.start();
  const inspectorPort = await freePort();
  const seconds = Number(values.seconds);
  const slow = values.load === 'slow-streams';
  const redis = values.load === 'session-redis';
  const storage = { hot_backend: redis ? 'redis' : 'memory', cold_backend: 'sqlite' };
  const config = { ...(slow ? { models: slowModels(fleet.upstreams, seconds) } : {}), ...(session ? { session: { storage } } : {}) };
  const env: Record<string, string> = redis ? { REDIS_URL: await fleet.redisUrl() } : {};
  const server = await fleet.hermes({ config, env, flags: [`--inspect=127.0.0.1:${inspectorPort}`] });
  if (session) await fillSessions(server);
  await measure(server, slow ? load(chatBody({ model: 'stream_model', stream: true })) : sent, WARM_UP_SECONDS);
  const inspector = await openInspector(inspectorPort);
  await inspector.call('Profiler.enable');
  await inspector.call('Profiler.setSamplingInterval', { interval: SAMPLE_MICROS });
  await inspector.call('Profiler.start');
  const { requests, errors } = slow ? await stream(server, sent) : await saturate(server, sent, seconds);
  const { profile } = await inspector.call<{ profile: CpuProfile }>('Profiler.stop');
  inspector.close();

  const tree = toFrames(profile, root);
  const share = (micros: number): string => `${((micros / tree.total) * 100).toFixed(1)} %`;
  const rows = toFunctions(tree)
    .slice(0, MOST)
    .map(({ name, place, self, total }) => [name, place, share(self), (self / requests).toFixed(1), share(total)]);
  const title = `${values.load}: ${Math.round(requests)} requests in ${seconds} s, ${Math.round(tree.total / requests)} µs a request on the main thread (the profiler's own cost in it)`;
  const folder = join(root, '.bench');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `hermes-${values.load}`);
  writeFileSync(`${file}.cpuprofile`, JSON.stringify(profile));
  writeFileSync(`${file}.html`, toFlameGraph(tree, title));
  process.stdout.write(
    `${title}\n\n${table(['function', 'where', 'itself', 'µs/request', 'with what it calls'], rows).join('\n')}\n\n${file}.cpuprofile\n${file}.html\n`,
  );
  if (errors > 0) throw new Error(`${errors} errors`);
}

await runMain(main);
