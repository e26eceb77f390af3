/** The pictures of the README, of real data: `npx tsx scripts/pictures.ts [seconds]` runs the demo under some traffic, with Prometheus and Chromium. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { createApp } from '../src/app.ts';
import { startDemoTools } from '../src/cli/demo-tools.ts';
import { KEY, keepLog, user } from '../test/app-kit.ts';
import { available, startPrometheus } from '../test/services.ts';
import { drawDashboard, type Panel, type Series } from './draw-dashboard.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const seconds = Number(process.argv[2] ?? 180);
const STEP_S = 3;
for (const service of ['prometheus', 'chromium'] as const) if (available(service)) throw new Error(available(service));

const tools = await startDemoTools(0);
const env = { API_KEY: KEY, DATABASE_URL: 'sqlite::memory:', DEMO_TOOLS_PORT: String(tools.port) };
const app = await createApp({ load: { file: `${root}config/demo.yaml`, env, flags: { port: 0, host: '127.0.0.1' } }, createLog: () => keepLog([]) });
const base = `http://127.0.0.1:${app.port}`;
const prometheus = await startPrometheus(
  `global: { scrape_interval: 1s }\nscrape_configs: [{ job_name: hermes, static_configs: [{ targets: ["127.0.0.1:${app.port}"] }] }]\n`,
);
const began = Date.now();

const QUESTIONS = [
  '帮我查一下订单20240515的状态',
  '我要退款',
  'where is my order 20240515?',
  'hello there',
  '我买的东西怎么还没到',
  'please explain our returns policy',
];
const ILL = 0.02;
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T;
async function talk(number: number): Promise<void> {
  for (let turn = 0; Date.now() - began < seconds * 1000; turn++) {
    const text = `${pick(QUESTIONS)}${pick([' [[slow 20]]', ' [[slow 60]]'])}${Math.random() < ILL ? ' [[fail 503]]' : ''}`;
    const body = { messages: user(text), stream: turn % 2 === 0, session_id: `customer-${number}-${Math.floor(turn / 8)}`, user: `user-${number}` };
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    await (await fetch(`${base}/v1/chat`, { method: 'POST', headers, body: JSON.stringify({ ...body, ...(turn % 5 ? {} : { user_level: 'vip' }) }) })).text();
    // A tide, so that there is something to see.
    await sleep(200 + 600 * (1 + Math.sin((Date.now() - began) / 15_000)) * Math.random());
  }
}
await Promise.all(Array.from({ length: 8 }, (_, number) => talk(number)));

const dashboard = JSON.parse(readFileSync(`${root}grafana/dashboards/hermes-overview.json`, 'utf8')) as { title: string; panels: Panel[] };
const ask = async (expression: string): Promise<Series[]> => {
  const query = expression.replaceAll('$__rate_interval', '20s').replaceAll('$service', '.*');
  const range = new URLSearchParams({ query, start: String(began / 1000 + 20), end: String(Date.now() / 1000), step: String(STEP_S) });
  const answer = (await (await fetch(`${prometheus.url}/api/v1/query_range?${range}`)).json()) as {
    data: { result: { metric: Record<string, string>; values: [number, string][] }[] };
  };
  return answer.data.result.map(({ metric, values }) => ({ labels: metric, points: values.map(([at, value]) => [at, Number(value)]) }));
};
mkdirSync(`${root}docs/pictures`, { recursive: true });
writeFileSync(`${root}docs/pictures/dashboard.svg`, await drawDashboard(dashboard, ask));

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--headless=new', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, locale: 'en-GB' });
await page.goto(`${base}/console`);
await page.fill('input[type=password]', KEY);
await page.keyboard.press('Enter');
await page.locator('nav').waitFor();
const more = (async () => {
  for (let i = 0; i < 60; i++) {
    const body = JSON.stringify({ messages: user(pick(QUESTIONS)), session_id: `customer-${i % 5}` });
    await (await fetch(`${base}/v1/chat`, { method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body })).text();
    await sleep(200);
  }
})();
await sleep(11_000);
await page.screenshot({ path: `${root}docs/pictures/console.png` });
await more;
await browser.close();
await prometheus.stop();
await app.stop();
await tools.close();
process.exit();
