import { spawn } from 'node:child_process';
import type { CommandLine } from '../parts/command-line.ts';
import type { Fleet } from '../parts/fleet.ts';
import { hermesConfig } from '../parts/hermes-config.ts';
import { CHAT, chatBody, load } from '../parts/loads.ts';
import { cpuSeconds, rssMb } from '../parts/process-usage.ts';
import { type Side, table } from '../parts/rounds.ts';
import type { Scenario, Section } from '../parts/scenario.ts';
import { root, type Server } from '../parts/servers.ts';
import type { StreamsFindings, StreamsPlan } from '../parts/stream-clients.ts';
import { type Load, measure as saturate } from '../parts/wrk.ts';

const STREAMS = 1000;
const EVERY_MS = 50;
const RAMP_MS = 1000;
const SAMPLE_MS = 250;

interface Measured extends StreamsFindings {
  rssMb: number;
  /** Of one core. */
  cpuShare: number;
}

/** One long round each: what is looked for is memory and delay, not throughput. */
async function measure({ server, load: { path, headers, body } }: Side<Load>): Promise<Measured> {
  const plan: StreamsPlan = { port: server.port, path, headers, body, streams: STREAMS, rampMs: RAMP_MS };
  const child = spawn(process.execPath, ['--import', 'tsx', 'bench/parts/stream-clients.ts', JSON.stringify(plan)], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  const [began, before] = [performance.now(), cpuSeconds(server.pid)];
  let most = 0;
  const sampler = setInterval(() => (most = Math.max(most, rssMb(server.pid))), SAMPLE_MS);
  await new Promise((resolve, reject) =>
    child.once('close', (code) => (code === 0 ? resolve(undefined) : reject(new Error(`the clients ended with ${code}`)))),
  );
  clearInterval(sampler);
  const seconds = (performance.now() - began) / 1000;
  return { ...(JSON.parse(said) as StreamsFindings), rssMb: most, cpuShare: (cpuSeconds(server.pid) - before) / seconds };
}

async function run(fleet: Fleet, settings: CommandLine): Promise<Section> {
  // `--seconds 12` for a minute.
  const seconds = settings.seconds * 5;
  const path = `/events/${Math.round((seconds * 1000) / EVERY_MS)}/${EVERY_MS}`;
  const { paced } = fleet.upstreams;
  const models = hermesConfig(fleet.upstreams).models.map((model) =>
    model.id === 'events_model' ? { ...model, api_base: `http://127.0.0.1:${paced.port}${path}/v1` } : model,
  );
  const body = chatBody({ model: 'events_model', stream: true });
  const carried = load(body, { path: `${path}${CHAT}` });
  const side = (label: string, server: Server, sent: Load): Side<Load> => ({ label, server, load: sent });
  const sides = [
    side('straight to the upstream', paced, carried),
    side('bare proxy', await fleet.bare(paced), carried),
    ...(fleet.quick ? [] : [side('http-proxy-3', await fleet.httpProxy(paced), carried), side('nginx', await fleet.nginx(paced), carried)]),
    side('hermes', await fleet.hermes({ config: { models }, name: 'hermes, slow streams' }), load(body)),
  ];
  // A compiler at work is no steady state.
  const gateway = sides.find(({ label }) => label === 'hermes');
  if (gateway) await saturate(gateway.server, load(chatBody({ model: 'stream_model', stream: true })), settings.firstWarmUpSeconds);
  const rows: string[][] = [];
  for (const each of sides) {
    const { most, errors, ages, rssMb: rss, cpuShare } = await measure(each);
    const ms = [ages.p50, ages.p90, ages.p99, ages.max].map((age) => age?.toFixed(2) ?? '–');
    rows.push([each.label, String(most), ...ms, rss.toFixed(0), `${(cpuShare * 100).toFixed(0)} %`, String(errors)]);
  }
  await fleet.retire(sides.flatMap(({ server }) => (server === paced ? [] : [server])));
  return {
    title: `${STREAMS} streams at once, ${1000 / EVERY_MS} events/s each, ${seconds} s: how long an event is under way`,
    lines: table(['', 'at once', 'p50 ms', 'p90 ms', 'p99 ms', 'longest', 'most RSS MB', 'CPU of a core', 'errors'], rows),
  };
}

export const slowStreams: Scenario[] = [{ name: 'slow-streams', title: '1,000 slow streams', quick: false, main: true, run }];
