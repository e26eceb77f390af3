import { type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { fuzzRequests } from './fuzz-requests.ts';
import { feedGarbage } from './garbage-streams.ts';
import { holdSlowly, sendBombs } from './hostile-clients.ts';
import { createRandom } from './random.ts';
import { smuggleRequests } from './smuggle.ts';

export interface BadInput {
  seed: number;
  requests: number;
  streams: number;
  smuggled: number;
  bombs: number;
  slow: number;
}
export interface BadInputReport {
  statuses: Record<string, number>;
  wrong: string[];
}
const SECRET = 'sk-upstream-never-told';
const SLOW_LIMIT_MS = 15_000;
/** Short, so that slow clients are seen to be let go. */
const server = { header_timeout_ms: 700, request_timeout_ms: 1500, keep_alive_timeout_ms: 2000 };
/** Timers and sockets that come and go by themselves: of the test's own client, of the pools. */
const KEPT_RESOURCES = 40;

/** Everything that clients and upstreams should not send, to one app; what stands in `wrong` must not be. */
export async function sendBadInput({ seed, requests, streams, smuggled, bombs, slow }: BadInput): Promise<BadInputReport> {
  const upstream = await createFakeUpstream({ strict: false });
  const app = await startApp(
    { server, models: ['m', 'garbage'].map((id) => ({ id, provider: 'openai', model_name: id, api_base: upstream.url, api_key_env: 'UP_KEY' })) },
    { env: { UP_KEY: SECRET } },
  );
  try {
    await app.chat({ messages: user('first') });
    const before = process.getActiveResourcesInfo().length;
    const fuzz = await fuzzRequests(app.app.port, requests, createRandom(seed), SECRET);
    const wrong = [
      ...fuzz.wrong,
      ...(await feedGarbage(app, upstream, 'garbage', streams, createRandom(seed))),
      ...(await smuggleRequests(app, upstream, smuggled, createRandom(seed))),
      ...(await sendBombs(app, bombs, createRandom(seed))),
      ...(await holdSlowly(app, slow, createRandom(seed), SLOW_LIMIT_MS)),
      ...(await whatIsLeft(app, upstream, before)),
    ];
    return { statuses: fuzz.statuses, wrong };
  } finally {
    await app.stop();
    await upstream.close();
  }
}

async function whatIsLeft(app: RunningApp, upstream: FakeUpstream, before: number): Promise<string[]> {
  const wrong: string[] = [];
  if ((await app.chat({ messages: user('still here') })).status !== 200) wrong.push('an honest request is not answered afterwards');
  if (({} as { admin?: unknown }).admin !== undefined) wrong.push('a prototype was changed');
  const inFlight = (await app.fetch('/metrics')).text.match(/^hermes_requests_in_flight (\d+)$/m)?.[1];
  if (inFlight !== '0') wrong.push(`${inFlight} requests are in flight`);
  await upstream.until(() => upstream.calls.every(({ closedAt }) => closedAt !== undefined), 10_000).catch(() => wrong.push('upstream calls are still open'));
  const [left, kinds] = [process.getActiveResourcesInfo(), new Map<string, number>()];
  for (const kind of left) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  if (left.length > before + KEPT_RESOURCES) wrong.push(`timers and sockets are left: ${before} before, now ${JSON.stringify([...kinds])}`);
  return wrong;
}
