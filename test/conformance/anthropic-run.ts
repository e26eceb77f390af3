import { isDeepStrictEqual } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { type AnthropicCall, createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

export interface AnthropicHouse {
  app: RunningApp;
  fake: FakeAnthropic;
  close(): Promise<void>;
}
/** Both living versions: the older one goes by `x-api-key`, the newer by a bearer token. */
export const VERSIONS = ['2023-06-01', '2026-10-21'] as const;
type Version = (typeof VERSIONS)[number];
/** The upstream's names; clients of hermes use them too. */
const MODEL: Record<Version, string> = { '2023-06-01': 'claude-haiku-4-5', '2026-10-21': 'claude-opus-4-7' };

export interface AnthropicCase {
  name: string;
  run(client: Anthropic, model: string): Promise<unknown>;
  differs?: { why: string; compare(seen: unknown): unknown };
}

function answer({ raw, body }: AnthropicCall): ({ type: string } & Record<string, unknown>)[] {
  const thinks = raw.includes('#think') ? [{ type: 'thinking', thinking: '先想一想', signature: `sig-${body.messages.length}` }] : [];
  if (body.messages.at(-1)?.content.some(({ type }) => type === 'tool_result')) return [...thinks, { type: 'text', text: 'It is fine.' }];
  if (!raw.includes('#tools')) return [...thinks, { type: 'text', text: 'Hello, 世界 🎉' }];
  return [
    ...thinks,
    { type: 'text', text: 'let me look' },
    ...['北京', '上海'].map((city, index) => ({ type: 'tool_use', id: `toolu_${index}`, name: 'weather', input: { city } })),
  ];
}

export async function openAnthropicHouse(): Promise<AnthropicHouse> {
  const fake = await createFakeAnthropic(answer);
  const app = await startApp(
    {
      models: VERSIONS.map((version) => ({
        id: MODEL[version],
        provider: 'anthropic',
        model_name: MODEL[version],
        api_version: version,
        api_base: fake.url,
        api_key_env: 'ANT_KEY',
        failover: { max_attempts: 1 },
      })),
    },
    { env: { ANT_KEY: 'sk-ant' } },
  );
  return {
    app,
    fake,
    async close() {
      await app.stop();
      await fake.close();
    },
  };
}

function clientOf(version: Version, key: string, baseURL: string): Anthropic {
  const older = version === '2023-06-01';
  const headers = older ? { 'anthropic-version': version, 'x-api-key': key, authorization: null } : {};
  return new Anthropic({ apiKey: key, baseURL, maxRetries: 0, timeout: 10_000, defaultHeaders: headers });
}

export async function compareAnthropic(
  house: AnthropicHouse,
  version: Version,
  { run, differs }: AnthropicCase,
): Promise<{ same: boolean; direct: unknown; hermes: unknown }> {
  const [direct, hermes] = [
    plain(await run(clientOf(version, 'sk-ant', house.fake.url), MODEL[version])),
    plain(await run(clientOf(version, KEY, house.app.base), MODEL[version])),
  ];
  const seen = differs?.compare ?? ((one: unknown) => one);
  return { same: isDeepStrictEqual(seen(direct), seen(hermes)), direct: seen(direct), hermes: seen(hermes) };
}

function plain(seen: unknown): unknown {
  return JSON.parse(JSON.stringify(seen, (key, value) => (key === '_request_id' || key === 'request_id' ? undefined : value)) ?? 'null');
}

const WEATHER = { name: 'weather', input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } } };
const ask = (model: string, text: string, more: object = {}): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 4000,
  system: 'Be kind.',
  messages: [{ role: 'user', content: text }],
  ...more,
});
const thinking = (model: string): object => ({ thinking: model === 'claude-opus-4-7' ? { type: 'adaptive' } : { type: 'enabled', budget_tokens: 2000 } });

async function listed<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
}
async function exception(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { gave: await promise };
  } catch (error) {
    const { status, type } = error as { status?: number; type?: string };
    return { class: error instanceof Error ? error.constructor.name : String(error), status, type };
  }
}
/** Calls, their results, and the words after them. */
async function loop(client: Anthropic, model: string, text: string, more: object): Promise<unknown> {
  const first = await client.messages.create(ask(model, text, { tools: [WEATHER], ...more }));
  const results = first.content.flatMap((block) => (block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: '晴' }] : []));
  const messages: Anthropic.MessageParam[] = [
    { role: 'user', content: text },
    { role: 'assistant', content: first.content },
    { role: 'user', content: results },
  ];
  return [first, await client.messages.create(ask(model, text, { messages, tools: [WEATHER], ...more }))];
}
async function helped(client: Anthropic, model: string, text: string, more: object = {}): Promise<unknown> {
  const stream = client.messages.stream(ask(model, text, more));
  const told: unknown[] = [];
  for (const name of ['streamEvent', 'text', 'inputJson', 'thinking', 'signature', 'contentBlock', 'message'] as const)
    stream.on(name, (event: unknown) => told.push([name, structuredClone(event)]));
  return { message: await stream.finalMessage(), told };
}

export const ANTHROPIC_CASES: readonly AnthropicCase[] = [
  { name: 'messages.create', run: (client, model) => client.messages.create(ask(model, 'hi')) },
  { name: 'messages.create, streamed and iterated', run: async (client, model) => listed(await client.messages.create({ ...ask(model, 'hi'), stream: true })) },
  { name: '`messages.stream()` helper', run: (client, model) => helped(client, model, 'hi') },
  {
    name: '`messages.stream()` helper, tools and thinking',
    run: (client, model) => helped(client, model, '#tools #think', { tools: [WEATHER], ...thinking(model) }),
  },
  { name: 'tools and their results', run: (client, model) => loop(client, model, '#tools', {}) },
  { name: 'thinking kept through a tool loop', run: (client, model) => loop(client, model, '#tools #think', thinking(model)) },
  { name: 'a request that the vendor refuses', run: (client, model) => exception(client.messages.create(ask(model, 'hi', { service_tier: 'fastest' }))) },
  {
    name: 'a wrong key',
    run: (client, model) =>
      exception(client.withOptions({ apiKey: 'sk-wrong', defaultHeaders: { 'x-api-key': 'sk-wrong' } }).messages.create(ask(model, 'hi'))),
    differs: { why: 'that it is refused; the stand-in words it as 400', compare: (seen) => Reflect.has(seen as object, 'class') },
  },
];
