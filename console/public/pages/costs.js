import { get, getText, post, withQuery } from '../api.js';
import { bars } from '../charts.js';
import { badge, card, field, h, replace, table, tile } from '../dom.js';
import { number, usd } from '../format.js';
import { t } from '../i18n.js';

const GROUPS = ['service', 'model', 'route', 'hour', 'upstream', 'project', 'user', 'session', 'key'];
const DAY_MS = 86_400_000;
const money = (row) => Number(row.cost_nano_usd ?? 0) / 1e9;

export async function costs(body) {
  const day = h('input', { name: 'day', type: 'date' });
  const other = h('input', { name: 'compare', type: 'date' });
  const by = h(
    'select',
    { name: 'by', 'data-search': true },
    GROUPS.map((name) => h('option', { value: name }, name)),
  );
  const shadow = h(
    'select',
    { name: 'shadow' },
    [
      ['', t('live')],
      ['with', t('all')],
      ['only', t('shadow')],
    ].map(([value, text]) => h('option', { value }, text)),
  );
  const form = h(
    'form',
    { class: 'filters' },
    field(t('day'), day),
    field(t('compareWith'), other),
    field(t('groupBy'), by),
    field(t('shadow'), shadow),
    h('button', { class: 'quiet', type: 'button', onclick: () => download(query()) }, t('asCsv')),
  );
  const out = h('div', {});
  const budgets = h('div', {});
  replace(body, card('', form), out, budgets);
  showBudgets(budgets);
  const query = () => ({ day: day.value || 'today', by: by.value, shadow: shadow.value });
  const load = async () => {
    const asked = query();
    const [now, before] = await Promise.all([
      get(withQuery('/admin/costs', asked)),
      get(withQuery('/admin/costs', { ...asked, day: other.value || dayBefore(day.value) })).catch(() => ({ rows: [] })),
    ]);
    replace(out, report(now, before, asked.by, other.value || (day.value ? dayBefore(day.value) : t('yesterday'))));
  };
  form.addEventListener('change', () => load().catch((error) => replace(out, h('p', { class: 'refused' }, error.message))));
  form.addEventListener('submit', (event) => event.preventDefault());
  await load();
}

const KINDS = { open: 'good', crossed: 'bad', lifted: 'warn' };
async function showBudgets(place) {
  const { data } = await get('/admin/budgets').catch(() => ({ data: [] }));
  if (data.length === 0) return;
  const lift = async (budget, button) => {
    button.disabled = true;
    await post(`/admin/budgets/${encodeURIComponent(budget.id)}/lift`);
    await showBudgets(place);
  };
  const columns = [
    { head: t('budget'), cell: (budget) => h('b', {}, budget.id) },
    { head: t('service'), cell: (budget) => budget.service },
    { head: t('status'), cell: (budget) => badge(budget.state, KINDS[budget.state]) },
    { head: t('spent'), number: true, cell: (budget) => `${usd(budget.spent_usd)} / ${usd(budget.usd_per_day)}` },
    { head: t('switchTo'), cell: (budget) => budget.switch_to },
    {
      head: '',
      cell: (budget) => (budget.state === 'crossed' ? h('button', { class: 'quiet small', onclick: (event) => lift(budget, event.target) }, t('lift')) : ''),
    },
  ];
  replace(place, card(t('budgets'), table(columns, data, { label: t('budgets') })));
}

function dayBefore(day) {
  return day === '' ? 'yesterday' : new Date(Date.parse(`${day}T12:00:00Z`) - DAY_MS).toISOString().slice(0, 10);
}

function report({ rows, total }, before, by, otherDay) {
  const name = (row) => String(row[by] ?? '') || '–';
  // Hours of two days are compared by their time of day.
  const place = (row) => (by === 'hour' ? name(row).slice(11) : name(row));
  const earlier = new Map(before.rows.map((row) => [place(row), money(row)]));
  const sorted = by === 'hour' ? rows : [...rows].sort((a, b) => money(b) - money(a));
  return [
    h(
      'div',
      { class: 'tiles' },
      tile(t('total'), usd(money(total ?? {})), before.total ? `${otherDay}: ${usd(money(before.total))}` : ''),
      tile(t('callCount'), number(total?.calls ?? 0), `${number(total?.failed_calls ?? 0)} ${t('failedCalls')}`),
      tile(t('input'), number(total?.input_tokens ?? 0), `${t('cached')} ${number(total?.cached_tokens ?? 0)}`),
      tile(t('output'), number(total?.output_tokens ?? 0), `${t('reasoning')} ${number(total?.reasoning_tokens ?? 0)}`),
      tile(t('saved'), number(total?.saved_tokens ?? 0), t('savedHint')),
    ),
    rows.length === 0
      ? card('', h('p', { class: 'empty' }, t('nothing')))
      : card(
          t('cost'),
          bars(
            sorted.slice(0, 40).map((row) => ({ label: name(row), value: money(row), compare: earlier.get(place(row)) ?? 0 })),
            { format: usd },
          ),
          h('p', { class: 'hint' }, `${t('faint')} ${otherDay}`),
        ),
    card('', costTable(sorted, by, name)),
  ];
}

function costTable(rows, by, name) {
  const count = (head, field_) => ({ head, number: true, cell: (row) => number(Number(row[field_])) });
  return table(
    [
      { head: by, cell: name },
      count(t('callCount'), 'calls'),
      count(t('failedCalls'), 'failed_calls'),
      count(t('input'), 'input_tokens'),
      count(t('cached'), 'cached_tokens'),
      count(t('output'), 'output_tokens'),
      count(t('saved'), 'saved_tokens'),
      { head: t('cost'), number: true, cell: (row) => usd(money(row)) },
    ],
    rows,
    { empty: t('nothing'), label: t('costs') },
  );
}

async function download(query) {
  const url = URL.createObjectURL(new Blob([await getText(withQuery('/admin/costs', { ...query, format: 'csv' }))], { type: 'text/csv' }));
  h('a', { href: url, download: `hermes-costs-${query.day}-by-${query.by}.csv` }).click();
  URL.revokeObjectURL(url);
}
