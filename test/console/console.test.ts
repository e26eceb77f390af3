import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';
import { KEY, user } from '../app-kit.ts';
import { skipWithout } from '../services.ts';
import { type BusyApp, startBusyApp } from '../telemetry/busy-app.ts';

/** Kept for whoever wants to look. */
const SHOTS = fileURLToPath(new URL('../../coverage/console', import.meta.url));
/** https://github.com/dequelabs/axe-core: run by the browser's own tools, since the page's policy lets no other script in. */
const AXE = axe.source;
const MARKUP = '<script>document.title="broken"</script>';

/** What each page must show after traffic: a text that only data can bring. */
const SHOWS: Record<string, RegExp> = {
  overview: /fast_model/,
  traces: /order_query/,
  routes: /\{"keywords":\["order"\]\}/,
  sessions: /talk-1/,
  costs: /default/,
  upstreams: /simulator/,
  tools: /order\.query/,
  shadow: /vip → default/,
};

const PAGES = Object.keys(SHOWS);
const WITH_BROWSER = skipWithout('chromium');
let app: BusyApp;
let browser: Browser;
const problems: string[] = [];

if (WITH_BROWSER.skip === false) {
  before(async () => {
    mkdirSync(SHOTS, { recursive: true });
    app = await startBusyApp({ trace: { capture_content: true } });
    await app.traffic(1);
    await app.chat({ messages: user(`hello ${MARKUP}`), session_id: MARKUP });
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--headless=new', '--disable-gpu'] });
  });
  after(async () => {
    await browser.close();
    await app.stop();
  });
}

const open = async (options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> => {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 }, locale: 'en-GB', ...options });
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(`${app.base}/console`);
  return page;
};
const signIn = async (page: Page, key = KEY): Promise<void> => {
  await page.fill('input[type=password]', key);
  await page.keyboard.press('Enter');
};
/** As an operator: in. */
const enter = async (page: Page): Promise<void> => {
  await signIn(page);
  await page.locator('nav').waitFor();
};
/** What axe finds wrong with the page as it is now, without what is only a matter of taste. */
const findings = async (page: Page): Promise<string[]> => {
  await page.evaluate(AXE);
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical' || impact === 'moderate')
    .map(
      ({ id, impact, nodes }) =>
        `${impact} ${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`).join(' | ')}`,
    );
};
const go = async (page: Page, place: string): Promise<void> => {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${place}`)}`);
};

describe('the console in a real browser', WITH_BROWSER, () => {
  it('opens every page with data, without a word in the browser’s console', async () => {
    const page = await open();
    await enter(page);
    for (const [name, shows] of Object.entries(SHOWS)) {
      await go(page, name);
      await page.locator('main', { hasText: shows }).waitFor({ timeout: 8000 });
      await page.screenshot({ path: join(SHOTS, `${name}.png`) });
    }
    await page.close();
    assert.deepEqual(problems, []);
  });

  it('leads from a request id to its waterfall, its content and a curl without the key', async () => {
    const answer = await app.chat({ messages: user('where is order 9? [[tool order.query {"order_id":"9"}]]') });
    const page = await open();
    await enter(page);
    await page.keyboard.press('2');
    await page.fill('input[name=id]', answer.headers.get('x-request-id') ?? '');
    await page.keyboard.press('Enter');
    await page.locator('.span-row', { hasText: 'tool order.query' }).waitFor({ timeout: 8000 });
    const text = (await page.locator('main').textContent()) ?? '';
    assert.match(text, /where is order 9\?/);
    assert.match(text, /curl http/);
    assert.ok(!text.includes(KEY));
    assert.equal(await page.locator('.span-row', { hasText: 'attempt' }).count(), 2);
    await page.screenshot({ path: join(SHOTS, 'trace.png'), fullPage: true });
    await page.close();
  });

  it('shows markup in names and messages as the text that it is', async () => {
    const page = await open();
    await enter(page);
    await go(page, `sessions/default/${encodeURIComponent(MARKUP)}`);
    await page.locator('.bubble', { hasText: MARKUP }).first().waitFor({ timeout: 8000 });
    assert.ok((await page.locator('.crumbs').textContent())?.includes(MARKUP));
    assert.equal(await page.locator('main script').count(), 0);
    assert.match(await page.title(), /Sessions/);
    await page.close();
  });

  it('answers the playground, drains and resets an upstream', async () => {
    const page = await open();
    page.on('dialog', (dialog) => void dialog.accept());
    await enter(page);
    await go(page, 'routes');
    await page.fill('textarea', 'where is my order');
    await page.click('main form button.primary');
    await page.locator('.decision', { hasText: 'order_query' }).waitFor({ timeout: 8000 });
    await go(page, 'upstreams');
    const row = page.locator('tr', { hasText: 'demo-backup' });
    await row.getByRole('button', { name: 'Drain' }).click();
    await row.locator('.badge', { hasText: 'drained' }).waitFor({ timeout: 8000 });
    await row.getByRole('button', { name: 'Reset' }).click();
    await row.locator('.badge', { hasText: 'closed' }).waitFor({ timeout: 8000 });
    // What its breaker did, also before anybody looked, and its share of the model that lists it.
    await page.locator('.turns li', { hasText: 'broken' }).filter({ hasText: 'closed → open' }).first().waitFor({ timeout: 8000 });
    await page.locator('.turns li', { hasText: 'backup' }).filter({ hasText: 'drained → closed' }).first().waitFor({ timeout: 8000 });
    assert.match((await row.textContent()) ?? '', /pair 1 \(50 %\)/);
    await page.close();
  });

  it('draws its lines, tells what was trimmed, and compares a day with any other', async () => {
    const page = await open();
    await enter(page);
    await page.locator('.u-legend', { hasText: 'p95' }).waitFor({ timeout: 8000 });
    assert.equal(await page.locator('.line-chart canvas').count(), 2);
    await go(page, 'sessions/default/talk-1');
    await page.locator('.bubble.user', { hasText: 'turn 0' }).locator('.badge', { hasText: 'left out of the last turn' }).waitFor({ timeout: 8000 });
    assert.equal(await page.locator('.bubble.user', { hasText: 'turn 3' }).locator('.badge', { hasText: 'left out' }).count(), 0);
    assert.match((await page.locator('.bubble.user', { hasText: 'turn 3' }).first().textContent()) ?? '', /\d+ Tokens/i);
    await go(page, 'costs');
    const today = new Date().toISOString().slice(0, 10);
    await page.fill('input[name=compare]', today);
    await page.locator('main', { hasText: `Faint: ${today}` }).waitFor({ timeout: 8000 });
    assert.ok((await page.locator('.bar.before').count()) > 0);
    await page.selectOption('select[name=by]', 'model');
    await page.locator('main', { hasText: 'fast_model' }).waitFor({ timeout: 8000 });
    await page.close();
  });
});

describe('the console to everybody', WITH_BROWSER, () => {
  for (const colorScheme of ['light', 'dark'] as const)
    it(`has no serious finding of axe on any page, ${colorScheme}`, async () => {
      const page = await open({ colorScheme });
      assert.deepEqual(await findings(page), [], 'sign-in');
      await enter(page);
      const trace = (await app.chat({ messages: user('where is order 11? [[tool order.query {"order_id":"11"}]]') })).headers.get('x-request-id') ?? '';
      const places = { ...SHOWS, [`traces/${trace}`]: /execute|order\.query/, 'sessions/default/talk-1': /turn 3/ };
      for (const [place, shows] of Object.entries(places)) {
        await go(page, place);
        await page.locator('main', { hasText: shows }).waitFor({ timeout: 8000 });
        if (place === 'overview') await page.locator('canvas').nth(1).waitFor({ timeout: 8000 });
        assert.deepEqual(await findings(page), [], place);
        await page.screenshot({ path: join(SHOTS, `${colorScheme}-${place.replaceAll('/', '-').slice(0, 20)}.png`) });
      }
      await go(page, 'routes');
      await page.fill('textarea', 'where is my order');
      await page.click('main form button.primary');
      await page.locator('.decision', { hasText: 'order_query' }).waitFor({ timeout: 8000 });
      assert.deepEqual(await findings(page), [], 'playground');
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.locator('dialog').waitFor();
      assert.deepEqual(await findings(page), [], 'help');
      await page.close();
    });

  it('is driven by the keyboard alone: from the sign-in to a request’s waterfall and back', async () => {
    const page = await open();
    await page.keyboard.type(KEY);
    await page.keyboard.press('Enter');
    await page.locator('nav').waitFor();
    await page.keyboard.press('2');
    await page.locator('tr.opens').first().waitFor({ timeout: 8000 });
    for (let presses = 0; presses < 60; presses++) {
      if (await page.evaluate('document.activeElement.matches("tr.opens")')) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    await page.locator('.span-row').first().waitFor({ timeout: 8000 });
    await page.keyboard.press('Escape');
    await page.locator('tr.opens').first().waitFor({ timeout: 8000 });
    await page.close();
  });

  it('says everything in both languages', () => {
    const source = ['main.js', 'i18n.js', ...PAGES.map((page) => `pages/${page}.js`)].map((file) =>
      readFileSync(fileURLToPath(new URL(`../../console/public/${file}`, import.meta.url)), 'utf8'),
    );
    const known = new Set([...(source[1] ?? '').matchAll(/^ {2}(\w+): \[/gm)].map(([, name]) => name));
    const used = source.flatMap((text) => [...text.matchAll(/\bt\('(\w+)'\)/g)].map(([, name]) => name));
    assert.ok(used.length > 100);
    assert.deepEqual(
      used.filter((name) => !known.has(name)),
      [],
    );
    assert.deepEqual([...(source[1] ?? '').matchAll(/^ {2}\w+: \[\s*(['"]).+\1,\s*(['"]).+\2,?\s*\],$/gm)].length, known.size, 'a text has only one language');
  });
});

describe('the console and its guests', WITH_BROWSER, () => {
  it('keeps the key in memory alone: nothing is stored, and a reload asks again', async () => {
    const page = await open();
    await enter(page);
    const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])');
    assert.ok(!String(stored).includes(KEY));
    await page.reload();
    await page.locator('input[type=password]').waitFor();
    assert.equal(await page.locator('nav').count(), 0);
    await page.close();
  });

  it('lets nobody in with a wrong key, or one that is not admin', async () => {
    const page = await open();
    for (const [key, told] of [
      ['sk-wrong-0000000000000000', /key/i],
      ['kb-3f9c1d7e5a2b48c6aa', /not an admin key/],
    ] as const) {
      await signIn(page, key);
      await page.locator('.refused', { hasText: told }).waitFor({ timeout: 5000 });
      assert.equal(await page.locator('nav').count(), 0);
    }
    await page.close();
    // What the browser itself notes of a 401 and a 403 is no fault of the page.
    problems.length = 0;
  });

  it('speaks Chinese, is dark where the system is, and fits a telephone', async () => {
    const page = await open({ locale: 'zh-CN', colorScheme: 'dark', viewport: { width: 390, height: 800 } });
    await enter(page);
    await page.locator('h1', { hasText: '总览' }).waitFor();
    assert.equal(await page.evaluate('document.documentElement.lang'), 'zh-CN');
    await go(page, 'traces');
    await page.locator('h1', { hasText: '链路' }).waitFor();
    await page.locator('tr.opens').first().waitFor();
    const wide = Number(await page.evaluate('document.documentElement.scrollWidth'));
    const ground = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'));
    assert.ok(wide <= 390, `${wide} pixels wide`);
    assert.match(ground, /rgb\((\d{1,2}), (\d{1,2}), (\d{1,2})\)/);
    await page.screenshot({ path: join(SHOTS, 'dark-zh-phone.png') });
    await page.close();
  });

  it('loads under 100 kB, from nowhere but here, under a strict policy', async () => {
    const page = await browser.newPage();
    const loaded: { url: string; bytes: number }[] = [];
    page.on('response', async (response) => {
      if (response.url().includes('/console')) loaded.push({ url: response.url(), bytes: (await response.body()).length });
      else loaded.push({ url: response.url(), bytes: 0 });
    });
    await page.goto(`${app.base}/console`, { waitUntil: 'networkidle' });
    const total = loaded.reduce((sum, { bytes }) => sum + bytes, 0);
    assert.ok(total > 10_000 && total < 100_000, `${total} bytes`);
    assert.ok(loaded.every(({ url }) => url.startsWith(`${app.base}/console`)));
    const policy = (await app.fetch('/console')).headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*/);
    await page.close();
  });

  it('left no error in the browser’s console', () => assert.deepEqual(problems, []));
});
