import { get } from '../api.js';
import { bars } from '../charts.js';
import { card, h, replace, tile } from '../dom.js';
import { milliseconds, number, percent, usd } from '../format.js';
import { t } from '../i18n.js';
import { lineChart } from '../line-chart.js';
import { allReadings, earlier, newest, onReading } from '../live.js';
import { quantile, rate, sum, sumBy } from '../metrics.js';
import { traceTable } from './traces.js';

const MINUTE = 60_000;
const isError = ({ status }) => Number(status) >= 500;
const perSecond = (value) => number(value, value < 10 ? 2 : 0);
const inMilliseconds = (seconds) => milliseconds(seconds * 1000);

export function overview(body) {
  const tiles = h('div', { class: 'tiles' });
  const requests = lineChart(
    t('requestRate'),
    [
      { label: t('requests'), kind: 'a' },
      { label: t('errors'), kind: 'bad' },
    ],
    perSecond,
  );
  const latency = lineChart(
    t('latency'),
    [
      { label: 'p50', kind: 'b' },
      { label: 'p95', kind: 'a' },
    ],
    inMilliseconds,
  );
  const models = h('div', {});
  const latest = h('div', {});
  replace(
    body,
    tiles,
    h('div', { class: 'two' }, card(t('requestRate'), requests.element), card(t('latency'), latency.element)),
    h('div', { class: 'two' }, card(t('byModel'), models), card(t('upstreams'), h('div', { id: 'overview-upstreams' }))),
    card(t('latest'), latest),
  );
  const draw = () => {
    const now = newest();
    const then = earlier(MINUTE);
    replace(tiles, tilesOf(now, then));
    drawCharts(requests, latency);
    replace(
      models,
      bars(
        sumBy(now, 'hermes_requests_total', 'model')
          .slice(0, 8)
          .map(([label, value]) => ({ label: label || '–', value })),
        { format: (value) => number(value) },
      ),
    );
    replace(document.getElementById('overview-upstreams') ?? h('div'), statesOf(now));
  };
  let timer;
  const list = async () => {
    try {
      const { data } = await get('/admin/traces?limit=12');
      // A row that has the focus keeps it.
      if (!latest.contains(document.activeElement)) replace(latest, traceTable(data));
    } catch {
      // The next round tries again.
    }
    timer = setTimeout(list, 4000);
  };
  list();
  const off = onReading(draw);
  return () => {
    off();
    clearTimeout(timer);
    requests.close();
    latency.close();
  };
}

function tilesOf(now, then) {
  const window = then === now ? undefined : then;
  const requests = window ? rate(now, window, 'hermes_requests_total') : 0;
  const errors = window ? rate(now, window, 'hermes_requests_total', isError) : 0;
  const total = sum(now, 'hermes_requests_total');
  // Nothing in the last minute: what there was since the start says more than a dash.
  const busy = requests > 0 ? window : undefined;
  const note = busy ? t('lastMinute') : t('sinceStart');
  const share = requests > 0 ? errors / requests : sum(now, 'hermes_requests_total', isError) / total;
  return [
    tile(t('requestRate'), perSecond(requests), `${number(total)} ${t('sinceStart')}`),
    tile(t('inFlight'), number(sum(now, 'hermes_requests_in_flight'))),
    tile(t('errorRate'), percent(share), note),
    tile(`${t('latency')} p95`, inMilliseconds(quantile(now, busy, 'hermes_request_duration_seconds', 0.95)), note),
    tile(`${t('firstToken')} p95`, inMilliseconds(quantile(now, busy, 'hermes_time_to_first_token_seconds', 0.95)), note),
    tile(`${t('overhead')} p95`, inMilliseconds(quantile(now, busy, 'hermes_overhead_seconds', 0.95)), note),
    tile(t('spent'), usd(sum(now, 'hermes_cost_usd_total')), t('sinceStart')),
  ];
}

function drawCharts(requests, latency) {
  const readings = allReadings();
  const steps = readings.slice(1).map((later, index) => [later, readings[Math.max(0, index - 4)]]);
  const of = (pick) => steps.map(([later, before]) => pick(later, before));
  const times = of(({ at }) => at);
  const at = (q) => of((later, before) => quantile(later, before, 'hermes_request_duration_seconds', q));
  requests.set([
    times,
    of((later, before) => rate(later, before, 'hermes_requests_total')),
    of((later, before) => rate(later, before, 'hermes_requests_total', isError)),
  ]);
  latency.set([times, at(0.5), at(0.95)]);
}

const STATES = ['closed', 'half_open', 'open', 'set_aside', 'drained'];
export function statesOf(reading) {
  const samples = reading.samples.get('hermes_upstream_state') ?? [];
  if (samples.length === 0) return h('p', { class: 'empty' }, t('nothing'));
  return h(
    'div',
    { class: 'states' },
    samples.map(({ labels, value }) =>
      h(
        'a',
        { class: `state ${STATES[value] ?? ''}`, href: '#/upstreams' },
        h('span', { class: 'dot' }),
        labels.upstream,
        h('small', {}, STATES[value] ?? String(value)),
      ),
    ),
  );
}
