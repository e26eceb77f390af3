import type { Server } from './servers.ts';

export const KEY = 'sk-bench-5f0c1d7ab2e94d88';

/** Where the models of the bench answer. */
export interface Upstreams {
  /** Fixed answers, each in one packet (nginx). */
  fixed: Server;
  /** Event by event; or whole, when the whole body is read. */
  paced: Server;
}
interface ModelEntry {
  id: string;
  [key: string]: unknown;
}
export interface BenchConfig {
  models: ModelEntry[];
  route_rules: object[];
  [key: string]: unknown;
}

const WORDS = ['refund', 'return', 'invoice', 'coupon', 'delivery', 'address', 'warranty', 'complaint', 'exchange', 'payment'];

/** `count` rules, of which no message of the bench hits one but the last. */
export function rules(count: number): object[] {
  const made = Array.from({ length: count - 1 }, (_, index) => ({
    id: `rule_${index}`,
    match: { keywords: [`${WORDS[index % WORDS.length]}${index}`, `关键词${index}`, `topic ${index}`] },
    model: 'bench_model',
  }));
  return [...made, { id: 'default', match: '.*', model: 'default_model' }];
}

/** The default pipeline with a key, 50 rules and three limits; metrics, traces, log and ledger are on, as they always are. */
export function hermesConfig({ fixed, paced }: Upstreams): BenchConfig {
  const model = (id: string, at: Server, path: string): ModelEntry => ({
    id,
    provider: 'openai',
    model_name: 'bench-model',
    api_base: `http://127.0.0.1:${at.port}${path}`,
    api_key_env: 'UP_KEY',
    pricing: { input_per_million: 0.15, output_per_million: 0.6 },
  });
  return {
    models: [
      model('bench_model', fixed, '/v1'),
      model('stream_model', fixed, '/sse/v1'),
      model('events_model', paced, '/events/50/0/v1'),
      model('whole_model', paced, '/whole/v1'),
      { ...model('claude_model', fixed, '/anthropic'), provider: 'anthropic' },
      { ...model('claude_stream_model', fixed, '/anthropic-sse'), provider: 'anthropic' },
    ],
    default_model: 'bench_model',
    route_rules: rules(50),
    limits: [
      { per: 'user', requests_per_minute: 100_000_000 },
      { per: 'service', requests_per_minute: 100_000_000, tokens_per_minute: 100_000_000_000 },
      { per: 'key', requests_per_minute: 100_000_000 },
    ],
    session: { storage: { hot_backend: 'memory', cold_backend: 'sqlite' } },
    log: { level: 'info' },
  };
}
