import type { CommandLine } from '../parts/command-line.ts';
import type { Fleet, HermesOptions } from '../parts/fleet.ts';
import { hermesConfig } from '../parts/hermes-config.ts';
import { chatBody, load } from '../parts/loads.ts';
import { alternate, middle, ratio, table } from '../parts/rounds.ts';
import type { Scenario, Section } from '../parts/scenario.ts';
import { type Measured, measure } from '../parts/wrk.ts';

interface Option {
  name: string;
  title: string;
  without(fleet: Fleet): HermesOptions;
  with(fleet: Fleet): HermesOptions;
}

/** In place of hermes' own step: everybody may do everything, and nobody is asked. */
const OPEN_DOOR = `const everybody = { id: 'all', service: 'all', services: ['*'], project: 'default', projects: ['*'], admin: false, models: ['*'], tools: ['*'],
  userLevels: ['*'], priorities: ['*'], passthrough: [] };
const caller = { service: 'all', project: 'default', user: undefined, userLevel: undefined, priority: 'normal' };
export default { name: 'auth', handle(exchange, next) { exchange.principal = everybody; exchange.caller = caller; return next(); } };
`;

function withFailover(fleet: Fleet): HermesOptions {
  const { models } = hermesConfig(fleet.upstreams);
  const upstreams = [
    { target: 'first', weight: 70 },
    { target: 'second', weight: 30 },
  ];
  const copies = ['first', 'second'].map((id) => ({ ...models[0], id }));
  const failover = { strategy: 'weighted_round_robin', upstreams };
  return { config: { models: [...models.map((model) => (model.id === 'bench_model' ? { ...model, failover } : model)), ...copies] } };
}
const none = (): HermesOptions => ({});

const OPTIONS: Option[] = [
  { name: 'limits', title: 'three limits', without: () => ({ config: { limits: [] } }), with: none },
  { name: 'auth', title: 'keys and limits', without: () => ({ config: { limits: [] }, plugins: { 'auth.js': OPEN_DOOR } }), with: none },
  { name: 'failover', title: 'two upstreams with failover', without: none, with: withFailover },
  {
    name: 'guard',
    title: 'guards against personal data and secrets',
    without: none,
    with: () => ({
      config: {
        guards: [
          { id: 'people', kind: 'pii', action: 'redact' },
          { id: 'keys', kind: 'secrets', action: 'redact' },
        ],
      },
    }),
  },
  { name: 'traces', title: 'stored traces', without: () => ({ config: { trace: { keep_days: 0 } } }), with: none },
  { name: 'log', title: 'a log line a request', without: () => ({ config: { log: { level: 'warn' } } }), with: none },
  {
    name: 'seeing',
    title: 'log lines, stored traces and prices',
    without: (fleet) => ({
      config: {
        log: { level: 'warn' },
        trace: { keep_days: 0 },
        models: hermesConfig(fleet.upstreams).models.map(({ pricing: _, ...model }) => model as { id: string }),
      },
    }),
    with: none,
  },
];

async function compare({ title, ...option }: Option, fleet: Fleet, settings: CommandLine): Promise<string[]> {
  const sent = load(chatBody());
  // Two processes each: no two of the same kind are equally fast, by what their compilers made of the first thousand requests.
  const sides = [];
  for (const nth of ['1', '2']) {
    sides.push({ label: `without ${nth}`, server: await fleet.hermes({ ...option.without(fleet), name: `without ${title} ${nth}` }), load: sent });
    sides.push({ label: `with ${nth}`, server: await fleet.hermes({ ...option.with(fleet), name: `with ${title} ${nth}` }), load: sent });
  }
  const results = await alternate(title, sides, settings, measure);
  await fleet.retire(sides.map(({ server }) => server));
  const both = (side: string): Measured[] => [...(results.get(`${side} 1`) ?? []), ...(results.get(`${side} 2`) ?? [])];
  const [without, withIt] = [both('without'), both('with')];
  const of = (rounds: Measured[], pick: (measured: Measured) => number): string => middle(rounds, pick).toFixed(0);
  const to = (pick: (measured: Measured) => number): string => ratio(withIt, without, pick).toFixed(2);
  const rate = (m: Measured): number => m.requestsPerSecond;
  const cpu = (m: Measured): number => m.cpuMicros;
  return [title, of(without, rate), of(withIt, rate), to(rate), of(without, cpu), of(withIt, cpu), to(cpu)];
}

const HEAD = ['', 'requests/s without', 'with', 'with to without', 'CPU µs/request without', 'with', 'with to without'];

async function run(options: readonly Option[], fleet: Fleet, settings: CommandLine): Promise<Section> {
  const rows: string[][] = [];
  for (const option of options) rows.push(await compare(option, fleet, settings));
  return { title: 'What an option costs: hermes with it beside hermes without it, JSON chat', lines: table(HEAD, rows) };
}

/** All, and each by itself with `--only option-NAME`. */
export const options: Scenario[] = [
  { name: 'options', title: 'what options cost', quick: false, main: false, run: (fleet, settings) => run(OPTIONS, fleet, settings) },
];
export const singleOptions: Scenario[] = OPTIONS.map((option) => ({
  name: `option-${option.name}`,
  title: `what it costs: ${option.title}`,
  quick: false,
  main: false,
  run: (fleet, settings) => run([option], fleet, settings),
}));
