import { isDeepStrictEqual } from 'node:util';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { MODELS, scriptChat } from './chat-scripts.ts';
import type { Case } from './openai-cases.ts';
import { vendorRoutes } from './vendor-routes.ts';

const VENDOR_KEY = 'sk-vendor-0123456789abcdef';

export interface House {
  app: RunningApp;
  fake: FakeUpstream;
  direct: OpenAI;
  hermes: OpenAI;
  close(): Promise<void>;
}
/** The strict vendor, and hermes in front of it with an administrator's key. */
export async function openHouse(): Promise<House> {
  const fake = await createFakeUpstream({ apiKey: VENDOR_KEY, routes: vendorRoutes(VENDOR_KEY) });
  scriptChat(fake);
  const app = await startApp(
    {
      models: MODELS.map((id) => ({ id, provider: 'vendor', model_name: id, failover: { max_attempts: 1 } })),
      providers: { vendor: { type: 'openai', api_base: fake.url, api_key_env: 'VENDOR_KEY' } },
      default_model: 'text',
      passthrough: { upstream: 'vendor', responses: true },
    },
    { env: { VENDOR_KEY } },
  );
  const options = { maxRetries: 0, timeout: 10_000 };
  return {
    app,
    fake,
    // The strict vendor takes these for headers that a gateway has let through.
    direct: new OpenAI({ ...options, apiKey: VENDOR_KEY, baseURL: fake.url, fetch: withoutTelemetry }),
    hermes: new OpenAI({ ...options, apiKey: KEY, baseURL: `${app.base}/v1` }),
    async close() {
      await app.stop();
      await fake.close();
    },
  };
}

function withoutTelemetry(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const name of [...headers.keys()]) if (name.startsWith('x-stainless-')) headers.delete(name);
  return fetch(url, { ...init, headers });
}

export interface Verdict {
  same: boolean;
  direct: unknown;
  hermes: unknown;
}
/** Once against the vendor itself, once through hermes. */
export async function compare(house: House, { run, differs }: Case): Promise<Verdict> {
  const [direct, hermes] = [plain(await run(house.direct)), plain(await run(house.hermes))];
  const seen = differs?.compare ?? ((one: unknown) => one);
  return { same: isDeepStrictEqual(seen(direct), seen(hermes)), direct: seen(direct), hermes: seen(hermes) };
}

/** As data: what JSON can say, without the id of the request, which is each server's own. */
function plain(seen: unknown): unknown {
  return JSON.parse(JSON.stringify(seen, (key, value) => (key === '_request_id' || key === 'request_id' ? undefined : value)) ?? 'null');
}
