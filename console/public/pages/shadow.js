import { get } from '../api.js';
import { card, h, replace, table, tile } from '../dom.js';
import { milliseconds, number, time, usd } from '../format.js';
import { t } from '../i18n.js';

const arrow = (a, b) => (a === b ? a : `${a} → ${b}`);

export async function shadow(body) {
  const report = await get('/admin/shadow/report?limit=100');
  if (report.comparisons === 0 && !report.rollout) {
    replace(body, card('', h('p', { class: 'empty' }, t('shadowOff'))));
    return;
  }
  replace(
    body,
    h(
      'div',
      { class: 'tiles' },
      tile(t('compared'), number(report.comparisons)),
      tile(t('sameRoute'), number(report.same_route)),
      tile(t('answered'), number(report.answered)),
      tile(t('skipped'), number(report.skipped_for_budget)),
      tile(t('spent'), usd(report.usd_today), report.usd_per_day === null ? '' : `/ ${usd(report.usd_per_day)}`),
    ),
    card(`${t('live')} → ${t('candidate')}`, pairTable(report.routes)),
    report.examples.length === 0 ? undefined : card(t('examples'), exampleTable(report.examples)),
    report.rollout && card(`${t('rollout')}: ${t('live')} → ${t('candidate')}`, rolloutTable(report.rollout.routes)),
  );
}

function pairTable(rows) {
  const change = (format, live, candidate) => (row) =>
    row[live] === null || row[candidate] === null ? '–' : `${format(row[live])} → ${format(row[candidate])}`;
  const nano = (value) => usd(value / 1e9);
  return table(
    [
      { head: t('route'), cell: (row) => h('b', {}, arrow(row.live_route, row.candidate_route)) },
      { head: t('model'), cell: (row) => arrow(row.live_model, row.candidate_model) },
      { head: t('requests'), number: true, cell: (row) => number(row.count) },
      { head: t('answered'), number: true, cell: (row) => number(row.answered) },
      { head: t('similarity'), number: true, cell: (row) => (row.similarity === null ? '–' : number(row.similarity, 2)) },
      { head: t('latency'), number: true, cell: change(milliseconds, 'live_latency_ms', 'candidate_latency_ms') },
      { head: t('cost'), number: true, cell: change(nano, 'live_cost_nano_usd', 'candidate_cost_nano_usd') },
      { head: t('verdict'), cell: (row) => row.verdict },
    ],
    rows,
    { label: t('shadow') },
  );
}

/** Both arms as they served: means a request. */
function rolloutTable(rows) {
  const arms = (name, format) => (row) => `${format(row.live[name] ?? Number.NaN)} → ${format(row.candidate[name] ?? Number.NaN)}`;
  return table(
    [
      { head: t('route'), cell: (row) => h('b', {}, arrow(row.live_route, row.candidate_route)) },
      { head: t('model'), cell: (row) => arrow(row.live_model, row.candidate_model) },
      { head: t('requests'), number: true, cell: arms('served', number) },
      { head: t('latency'), number: true, cell: arms('latency_ms', milliseconds) },
      { head: t('cost'), number: true, cell: arms('cost_nano_usd', (value) => usd(value / 1e9)) },
      { head: t('verdict'), cell: (row) => row.verdict },
    ],
    rows,
    { label: t('rollout') },
  );
}

function exampleTable(rows) {
  return table(
    [
      { head: t('time'), cell: (row) => time(row.at) },
      { head: t('route'), cell: (row) => arrow(row.live_route, row.candidate_route) },
      { head: t('message'), cell: (row) => row.text ?? '–' },
      { head: t('id'), cell: (row) => h('a', { href: `#/traces/${encodeURIComponent(row.request_id)}` }, row.request_id) },
    ],
    rows,
    { label: t('examples') },
  );
}
