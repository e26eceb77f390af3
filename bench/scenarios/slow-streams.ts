import type { CommandLine } from '../parts/command-line.ts';
import type { Fleet } from '../parts/fleet.ts';
import { CHAT, chatBody, load } from '../parts/loads.ts';
import { type Side, table } from '../parts/rounds.ts';
import type { Scenario, Section } from '../parts/scenario.ts';
import { EVERY_MS, measureStreams, STREAMS, slowModels, slowPath } from '../parts/slow-load.ts';
import { type Load, measure as saturate } from '../parts/wrk.ts';

interface SlowSide extends Side<Load> {
  /** Before it, that the compiler is at rest; all the same amount, for what it leaves in memory. */
  warmUp?: Load;
}

async function sidesOf(fleet: Fleet, seconds: number): Promise<SlowSide[]> {
  const { paced } = fleet.upstreams;
  const body = chatBody({ model: 'events_model', stream: true });
  const carried = load(body, { path: `${slowPath(seconds)}${CHAT}` });
  const warmUp = load(body, { path: `/events/50/0${CHAT}` });
  const others = fleet.quick
    ? []
    : [
        { label: 'http-proxy-3', server: await fleet.httpProxy(paced), load: carried, warmUp },
        { label: 'nginx', server: await fleet.nginx(paced), load: carried, warmUp },
      ];
  const hermes = await fleet.hermes({ config: { models: slowModels(fleet.upstreams, seconds) }, name: 'hermes, slow streams' });
  return [
    { label: 'straight to the upstream', server: paced, load: carried },
    { label: 'bare proxy', server: await fleet.bare(paced), load: carried, warmUp },
    ...others,
    { label: 'hermes', server: hermes, load: load(body), warmUp: load(chatBody({ model: 'stream_model', stream: true })) },
  ];
}

/** One long round each: what is looked for is memory and delay, not throughput. */
async function run(fleet: Fleet, settings: CommandLine): Promise<Section> {
  // `--seconds 12` for a minute.
  const seconds = settings.seconds * 5;
  const sides = await sidesOf(fleet, seconds);
  const rows: string[][] = [];
  for (const { label, server, load: sent, warmUp } of sides) {
    if (warmUp) await saturate(server, warmUp, settings.warmUp.seconds);
    const { most, errors, ages, rssMb: rss, cpuShare } = await measureStreams(server, sent);
    const ms = [ages.p50, ages.p90, ages.p99, ages.max].map((age) => age?.toFixed(2) ?? '–');
    rows.push([label, String(most), ...ms, rss.toFixed(0), `${(cpuShare * 100).toFixed(0)} %`, String(errors)]);
  }
  await fleet.retire(sides.flatMap(({ server }) => (server === fleet.upstreams.paced ? [] : [server])));
  return {
    title: `${STREAMS} streams at once, ${1000 / EVERY_MS} events/s each, ${seconds} s: how long an event is under way`,
    lines: table(['', 'at once', 'p50 ms', 'p90 ms', 'p99 ms', 'longest', 'most RSS MB', 'CPU of a core', 'errors'], rows),
  };
}

export const slowStreams: Scenario[] = [{ name: 'slow-streams', title: '1,000 slow streams', quick: false, main: true, run }];
