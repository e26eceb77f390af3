// npx tsx bench/shadow.ts [--rounds 8]: what clients notice of a shadow whose candidate is slow, failing and expensive. Two gateways
// side by side, without and with it, asked in turn by the same clients, so that whatever else the machine does befalls both.
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { freePort, type Server, scratch, start, stopAll } from './parts/servers.ts';
import { median } from './parts/statistics.ts';

const at = process.argv.indexOf('--rounds');
const ROUNDS = at < 0 ? 8 : Number(process.argv[at + 1]);
const A_ROUND = 500;
const REQUESTS = ROUNDS * A_ROUND;
const CLIENTS = 8;
const CAP_USD = 1;
const KEY = 'sk-bench-5f0c1d7ab2e94d88';

interface Gateway extends Server {
  agent: Agent;
  took: number[];
}

const folder = scratch();
const models = await startModels();
const rules = (model: string) => [
  { id: 'order', match: { keywords: ['order'] }, model, tools: ['order.query'] },
  { id: 'default', match: '.*', model },
];
writeFileSync(join(folder, 'next.json'), JSON.stringify(rules('rival')));

function startModels(): Promise<Server> {
  return freePort().then((port) => start('models', process.execPath, ['bench/parts/model-server.mjs', String(port)], port));
}

async function startGateway(name: string, more: object): Promise<Gateway> {
  const [port, file] = [await freePort(), join(folder, `${name}.json`)];
  const model = (id: string, price: number) => ({
    id,
    provider: 'openai',
    model_name: id,
    api_base: `http://127.0.0.1:${models.port}/v1`,
    api_key_env: 'UP_KEY',
    pricing: { input_per_million: price, output_per_million: price },
  });
  const config = {
    models: [model('live', 1), model('rival', 100)],
    default_model: 'live',
    route_rules: rules('live'),
    tools: [{ id: 'order.query', endpoint: `http://127.0.0.1:${models.port}/tool`, side_effects: false, parameters: { type: 'object' } }],
    session: { storage: { hot_backend: 'memory', cold_backend: 'sqlite' } },
    ...more,
  };
  writeFileSync(file, JSON.stringify(config));
  const env = { API_KEY: KEY, UP_KEY: 'sk-upstream', DATABASE_URL: `sqlite:///${folder}/${name}.db` };
  const server = await start(name, process.execPath, ['dist/src/main.js', 'serve', '--config', file, '--port', String(port), '--host', '127.0.0.1'], port, env);
  return { ...server, agent: new Agent({ keepAlive: true, maxSockets: CLIENTS }), took: [] };
}

function ask(gateway: { port: number; agent?: Agent }, method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${KEY}` };
    const sent = request({ host: '127.0.0.1', port: gateway.port, method, path, headers, ...(gateway.agent && { agent: gateway.agent }) }, (response) => {
      let text = '';
      response.on('data', (data) => {
        text += data;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject).end(body && JSON.stringify(body));
  });
}

async function chat(gateway: Gateway, index: number, session: string | undefined): Promise<void> {
  const started = performance.now();
  const body = { messages: [{ role: 'user', content: `Where is my order ${index}?` }], ...(session !== undefined && { session_id: session }) };
  const { status, text } = await ask(gateway, 'POST', '/v1/chat/completions', body);
  if (status !== 200) throw new Error(`${gateway.name} answered ${status}: ${text}`);
  gateway.took.push(performance.now() - started);
}

/** Each client asks one gateway, then the other, and begins with the other one the next time. */
async function drive(gateways: readonly Gateway[], requests: number, sessions: boolean): Promise<void> {
  let next = 0;
  const client = async (name: number): Promise<void> => {
    for (let index = next++; index < requests; index = next++) {
      for (const gateway of index % 2 ? gateways : [...gateways].reverse()) await chat(gateway, index, sessions ? `session-${name}` : undefined);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, name) => client(name)));
}

/** User and system time of a process. Source: proc(5), fields 14 and 15; 100 ticks a second. */
function cpuSeconds({ pid }: Server): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function quantile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
}

const shadow = (sample: number) => ({ shadow: { sample, rules_file: './next.json', run_models: true, usd_per_day: CAP_USD } });
const lines = [
  `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}; the live model answers after 40 ms, the candidate after 1.5 s or fails, at 100 times the price; ${CLIENTS} clients, ${ROUNDS} rounds of ${A_ROUND} requests each way`,
  '',
  '| sample | p50 without | p50 with | p99 without | p99 with | p99 ratio, median of the rounds | CPU a request | asked of the candidate | money of the shadow (cap 1 USD) | tools run | messages stored |',
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
];
// Twice without: what two equal gateways differ by on this machine.
for (const sample of [0, 0.1, 1]) {
  const without = await startGateway(`without-${sample}`, {});
  const with_ = await startGateway(`with-${sample}`, sample > 0 ? shadow(sample) : {});
  const counts = async () => JSON.parse((await ask(models, 'GET', '/counts')).text) as { rival: number; tool: number };
  const before = await counts();
  await drive([without, with_], 400, true);
  without.took.length = 0;
  with_.took.length = 0;
  const cpu = [cpuSeconds(without), cpuSeconds(with_)];
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const begun = without.took.length;
    await drive([without, with_], A_ROUND, false);
    ratios.push(quantile(with_.took.slice(begun), 0.99) / quantile(without.took.slice(begun), 0.99));
  }
  const after = await counts();
  const spent = [without, with_].map((gateway, index) => Math.round(((cpuSeconds(gateway) - (cpu[index] ?? 0)) * 1e6) / REQUESTS));
  const report = JSON.parse((await ask(with_, 'GET', '/admin/shadow/report')).text) as { usd_today: number };
  const stored = async (gateway: Gateway) =>
    (JSON.parse((await ask(gateway, 'GET', '/admin/sessions')).text) as { data: { messages: number }[] }).data.reduce((sum, { messages }) => sum + messages, 0);
  const ms = (gateway: Gateway, share: number) => `${quantile(gateway.took, share).toFixed(1)} ms`;
  lines.push(
    `| ${sample || 'none, twice'} | ${ms(without, 0.5)} | ${ms(with_, 0.5)} | ${ms(without, 0.99)} | ${ms(with_, 0.99)} | ${median(ratios).toFixed(3)} | ${spent.join(' and ')} µs | ${after.rival - before.rival} | ${report.usd_today.toFixed(4)} USD | ${after.tool - before.tool} | ${await stored(without)} and ${await stored(with_)} |`,
  );
}
process.stdout.write(`${lines.join('\n')}\n`);
stopAll();
process.exit(0);
