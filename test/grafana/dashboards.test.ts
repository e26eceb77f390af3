import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { type RunningApp, startApp, user } from '../app-kit.ts';
import { type PrometheusService, skipWithout, startPrometheus, until } from '../services.ts';
import { type BusyApp, startBusyApp } from '../telemetry/busy-app.ts';
import { metricSum } from '../telemetry/trace-kit.ts';

const folder = fileURLToPath(new URL('../../grafana', import.meta.url));
const read = (...path: string[]): string => readFileSync(join(folder, ...path), 'utf8');

interface Dashboard {
  uid: string;
  title: string;
  panels: { id: number; type: string; title: string; datasource: { uid: string }; targets: { expr: string; exemplar?: boolean }[] }[];
  templating: { list: { name: string }[] };
}
interface AlertRule {
  alert: string;
  expr: string;
  annotations: { summary: string };
  labels: { severity: string };
}
const dashboards = readdirSync(join(folder, 'dashboards')).map((file) => ({ file, board: JSON.parse(read('dashboards', file)) as Dashboard }));
const alerts = (parse(read('alerts.yml')) as { groups: { rules: AlertRule[] }[] }).groups.flatMap(({ rules }) => rules);

/** What Grafana puts in for its variables. */
const filledIn = (expr: string): string => expr.replaceAll('$__rate_interval', '20s').replaceAll('$__range', '1h').replaceAll('$service', '.*');
/** Without the comparison that makes it an alert: what is left has a value in good times, too. */
const measured = (expr: string): string => {
  const left = /^(.*) (?:>|<) [\d.]+$/s.exec(expr.trim())?.[1];
  assert.ok(left, `no comparison with a number ends ${expr}`);
  return left;
};
const metricNames = (expr: string): string[] => [...expr.matchAll(/\b(?:hermes|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);

describe('grafana', () => {
  it('has the dashboards and alerts of the contract', () => {
    assert.deepEqual(
      dashboards.map(({ board }) => board.title).sort(),
      ['Cost', 'Gateway health', 'Overview', 'Routing', 'Sessions and context', 'Upstreams and failover'].map((name) => `hermes: ${name}`),
    );
    assert.equal(new Set(dashboards.map(({ board }) => board.uid)).size, dashboards.length);
    for (const { board } of dashboards) {
      const ids = board.panels.map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(board.templating.list.some(({ name }) => name === 'datasource'));
    }
    for (const { alert, annotations, labels } of alerts) assert.ok(annotations.summary && /^(critical|warning|info)$/.test(labels.severity), alert);
  });

  it('names no user and no session anywhere', () => {
    for (const { board } of dashboards)
      for (const { expr } of board.panels.flatMap(({ targets }) => targets)) assert.doesNotMatch(expr, /\b(user|session)\b(?=[,)=])/);
  });

  it('leads from the points of every latency panel to a trace', () => {
    const latencies = dashboards
      .flatMap(({ board }) => board.panels)
      .filter(({ type, targets }) => type === 'timeseries' && targets.some(({ expr }) => expr.includes('_seconds_bucket')));
    assert.ok(latencies.length >= 5);
    for (const { title, targets } of latencies) assert.equal(targets.filter(({ exemplar }) => exemplar).length, 1, title);
    const { datasources } = parse(read('provisioning', 'datasources', 'prometheus.yml')) as {
      datasources: { jsonData: { exemplarTraceIdDestinations: { name: string; url: string }[] } }[];
    };
    // Grafana puts in the variables of its environment; what is left to its browser has its dollar doubled.
    assert.deepEqual(
      datasources[0]?.jsonData.exemplarTraceIdDestinations.map(({ name, url }) => [name, url]),
      [['x_request_id', `\${HERMES_CONSOLE}#/traces/$\${__value.raw}`]],
    );
    const compose = parse(readFileSync(join(folder, '..', 'docker-compose.yml'), 'utf8')) as {
      services: { prometheus: { command: string[] }; grafana: { environment: Record<string, string> } };
    };
    assert.ok(compose.services.prometheus.command.includes('--enable-feature=exemplar-storage'));
    assert.match(compose.services.grafana.environment.HERMES_CONSOLE ?? '', /\/console\}$/);
  });

  it('is provisioned by files that name what there is', () => {
    assert.deepEqual((parse(read('prometheus.yml')) as { rule_files: string[] }).rule_files, ['alerts.yml']);
    assert.equal((parse(read('provisioning', 'datasources', 'prometheus.yml')) as { datasources: { uid: string }[] }).datasources[0]?.uid, 'prometheus');
    assert.ok((parse(read('provisioning', 'dashboards', 'hermes.yml')) as { providers: unknown[] }).providers.length > 0);
  });
});

describe('every query of the dashboards and alerts', skipWithout('prometheus'), () => {
  let app: BusyApp;
  /** Of the same service, behind the same balancer. */
  let other: RunningApp;
  let prometheus: PrometheusService;
  const query = async (expr: string): Promise<{ value: [number, string] }[]> => {
    const response = await fetch(`${prometheus.url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    const { status, error, data } = (await response.json()) as { status: string; error?: string; data: { result: { value: [number, string] }[] } };
    assert.equal(status, 'success', `${expr}: ${error}`);
    return data.result;
  };
  const hasData = async (expr: string): Promise<boolean> => (await query(expr)).some(({ value }) => Number.isFinite(Number(value[1])));

  before(async () => {
    app = await startBusyApp();
    other = await startApp({});
    for (let at = 0; at < 5; at++) await other.chat({ messages: user('hello') });
    const targets = [app, other].map(({ base }) => base.slice('http://'.length));
    prometheus = await startPrometheus(
      `global: { scrape_interval: 500ms, evaluation_interval: 1s }\nrule_files: [ ${JSON.stringify(join(folder, 'alerts.yml'))} ]\nscrape_configs:\n  - { job_name: hermes, static_configs: [ { targets: ${JSON.stringify(targets)} } ] }\n`,
    );
    const file = join(app.folder, 'hermes.yaml');
    const good = readFileSync(file, 'utf8');
    // A rate needs growth between two scrapes: everything happens before the first of these and after it.
    for (let round = 1; round <= 3; round++) {
      await app.traffic(round);
      writeFileSync(file, 'models: 7');
      await app.post('/admin/reload', {});
      writeFileSync(file, good);
      await app.post('/admin/reload', {});
      await sleep(1200);
    }
    await sleep(800);
  });
  after(async () => {
    await prometheus?.stop();
    await app?.stop();
    await other?.stop();
  });

  /** Those without data, also after more traffic: on a busy machine a scrape may have come too early. */
  const withoutData = async (queries: readonly { what: string; expr: string }[]): Promise<string[]> => {
    let left = [...queries];
    for (let round = 10; round < 13; round++) {
      const found = await Promise.all(left.map(({ expr }) => hasData(expr)));
      left = left.filter((_, at) => !found[at]);
      if (left.length === 0) break;
      await app.traffic(round);
      await sleep(1500);
    }
    return left.map(({ what, expr }) => `${what}: ${expr}`);
  };

  it('returns data after traffic, panel by panel', async () => {
    const queries = dashboards.flatMap(({ board }) =>
      board.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ what: `${board.title}, ${title}`, expr: filledIn(expr) }))),
    );
    assert.ok(queries.length > 60);
    assert.deepEqual(await withoutData(queries), []);
  });

  it('returns data after traffic, alert by alert', async () => {
    assert.deepEqual(await withoutData(alerts.map(({ alert, expr }) => ({ what: alert, expr: measured(expr) }))), []);
  });

  it('names metrics that there are', async () => {
    const text = (await app.fetch('/metrics')).text;
    const known = new Set(
      [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' || type === 'summary' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
      ),
    );
    // Stores inside the process have no such series.
    known.add('hermes_store_up');
    const named = [
      ...dashboards.flatMap(({ board }) => board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))),
      ...alerts.map(({ expr }) => expr),
    ].flatMap(metricNames);
    assert.deepEqual(
      [...new Set(named)].filter((name) => !known.has(name)),
      [],
    );
  });

  it('adds several instances up', async () => {
    const own = (await Promise.all([app, other].map(({ fetch }) => fetch('/metrics')))).map(({ text }) => metricSum(text, 'hermes_requests_total'));
    assert.ok(own.every((count) => count >= 5));
    await until(
      async () => Number((await query('sum(hermes_requests_total)'))[0]?.value[1]) === own.reduce((sum, count) => sum + count, 0),
      'the sum is another',
    );
    const exprs = dashboards.flatMap(({ board }) => board.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr }))));
    for (const { title, expr } of exprs)
      if (!title.includes('by instance')) assert.match(expr, /\b(sum|max|min|avg|count by)\b/, `${title} shows one instance of several`);
  });

  it('raises the alert of a refused configuration, and of a degraded service', async () => {
    const firing = async (alert: string): Promise<boolean> => (await query(alerts.find((rule) => rule.alert === alert)?.expr ?? '')).length > 0;
    assert.ok(await firing('HermesConfigRefused'));
    assert.ok(await firing('HermesUpstreamOpen'));
    assert.ok(!(await firing('HermesDown')));
  });

  it('is clean to promtool, and so are the metrics of a busy gateway', async () => {
    assert.match(execFileSync('promtool', ['check', 'rules', join(folder, 'alerts.yml')], { encoding: 'utf8' }), /SUCCESS/);
    assert.equal(execFileSync('promtool', ['check', 'metrics'], { input: (await app.fetch('/metrics')).text, encoding: 'utf8' }), '');
    execFileSync('promtool', ['check', 'config', '--syntax-only', join(folder, 'prometheus.yml')]);
  });
});
