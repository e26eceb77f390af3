import type { Command } from 'commander';
import { createHouse, type House, systemEnvironment } from '../app/house.ts';
import { createConfigReader } from '../app/read-config.ts';
import { withoutStores } from '../app/without-stores.ts';
import type { ModelEntry } from '../contracts/config.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import { PipelineExchange } from '../pipeline/exchange.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { ExchangeTrace } from '../telemetry/trace.ts';
import type { ChatRequest } from '../wire/chat.ts';
import { toTable } from './cost-print.ts';

interface TestOptions {
  config?: string;
  timeout: string;
  json?: true;
}
interface Tested {
  model: string;
  upstream: string;
  model_name: string;
  ok: boolean;
  status: number;
  error: string | null;
  ms: number;
  tokens: number;
  cost_usd: number | null;
}

export function registerModelsCommands(program: Command): void {
  program
    .command('models')
    .description('The models of the configuration.')
    .command('test')
    .description('Ask every upstream for one token, the way requests are sent. One that does not answer exits 1.')
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .option('--timeout <seconds>', 'how long each may take', '30')
    .option('--json', 'for programs')
    .action((options: TestOptions) => test(options));
}

async function test(options: TestOptions): Promise<void> {
  const { registries, read } = await createConfigReader({ file: options.config });
  // No gateway's books are touched, and none is in the way.
  const loaded = withoutStores(read(), { tools: false });
  const house = await createHouse({ loaded, log: createLog('silent', process.stderr), metrics: createMetrics() }, registries);
  try {
    const results = await Promise.all(upstreamsOf(house).map(([model, target]) => ask(house, model, target, Number(options.timeout) * 1000 || 30_000)));
    process.stdout.write(options.json ? `${JSON.stringify(results, null, 2)}\n` : print(results));
    if (results.some(({ ok }) => !ok)) process.exitCode = 1;
  } finally {
    await house.close();
  }
}

/** Every upstream once, under the first model that lists it. */
function upstreamsOf(house: House): [ModelEntry, UpstreamTarget][] {
  const seen = new Map<string, [ModelEntry, UpstreamTarget]>();
  for (const model of house.generation().config.registry.models.values())
    for (const target of model.upstreams) if (!seen.has(target.identity)) seen.set(target.identity, [model, target]);
  return [...seen.values()];
}

async function ask(house: House, model: ModelEntry, upstream: UpstreamTarget, timeoutMs: number): Promise<Tested> {
  const { config } = house.generation();
  const id = systemEnvironment.uuid();
  const request: ChatRequest = { model: model.id, messages: [{ role: 'user', content: 'ping' }], max_tokens: 1 };
  const exchange = new PipelineExchange({
    id,
    config,
    headers: {},
    ask: {},
    wants: { stream: false, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
    inbound: { form: 'openai-chat', method: 'POST', path: '/v1/chat/completions', bytes: undefined, request, remoteAddress: '' },
    trace: new ExchangeTrace(id, systemEnvironment.now(), performance.now(), undefined),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
  exchange.attempt = { number: 1, model: model.id, upstream };
  const timer = setTimeout(() => exchange.cancel(new HermesError('upstream_timeout', `No answer within ${timeoutMs / 1000} s.`)), timeoutMs);
  const began = performance.now();
  let error: HermesError | undefined;
  try {
    error = (await house.rooms.upstream.send(exchange)).error;
  } catch (thrown) {
    error = toHermesError(thrown);
  } finally {
    clearTimeout(timer);
  }
  const [call] = exchange.calls;
  // Some count the one token as reasoning and have nothing left to say: they have answered all the same.
  const answered = error === undefined || (error.code === 'upstream_empty_answer' && call?.status === 200);
  return {
    model: model.id,
    upstream: upstream.id,
    model_name: upstream.modelName,
    ok: answered,
    status: call?.status ?? error?.status ?? 200,
    error: answered ? null : `${error?.wireCode ?? error?.code}: ${error?.message}`,
    ms: Math.round(performance.now() - began),
    tokens: (call?.tokens.input ?? 0) + (call?.tokens.output ?? 0),
    cost_usd: call?.costNanoUsd === undefined ? null : call.costNanoUsd / 1e9,
  };
}

function print(results: readonly Tested[]): string {
  const rows = results.map((one) => [
    one.model,
    one.upstream,
    one.model_name,
    one.ok ? 'ok' : 'FAILED',
    `${one.ms} ms`,
    String(one.tokens),
    one.cost_usd === null ? 'unpriced' : `$${one.cost_usd.toFixed(9)}`,
    one.error ?? '',
  ]);
  const failed = results.filter(({ ok }) => !ok).length;
  return [
    ...toTable([['model', 'upstream', 'model name', '', 'time', 'tokens', 'cost', ''], ...rows], new Set([0, 1, 2, 3, 7])),
    '',
    failed === 0 ? `${results.length} upstreams answer.` : `${failed} of ${results.length} upstreams do not answer.`,
    '',
  ].join('\n');
}
