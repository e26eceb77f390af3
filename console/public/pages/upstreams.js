import { get, post } from '../api.js';
import { bars } from '../charts.js';
import { badge, card, h, replace, table } from '../dom.js';
import { number, percent, time } from '../format.js';
import { t } from '../i18n.js';
import { newest, onReading } from '../live.js';

const KINDS = { closed: 'good', half_open: 'warn', open: 'bad', set_aside: 'warn', drained: 'warn', key_missing: 'bad' };
const MOST_CHANGES = 60;

export async function upstreams(body) {
  const list = h('div', {});
  const attempts = h('div', {});
  const history = h('div', {});
  replace(body, card('', list), h('div', { class: 'two' }, card(t('attempts'), attempts), card(t('history'), history)));
  const load = async () => {
    const { data } = await get('/admin/upstreams');
    // A button that has the focus keeps it: the list is not drawn anew under somebody's hand.
    if (!list.contains(document.activeElement) || document.activeElement.disabled) replace(list, stateTable(data, act));
    replace(history, changes(data));
  };
  const act = async (id, verb, button) => {
    if (verb === 'drain' && !confirm(`${t('drainAsk')}\n${id}`)) return;
    button.disabled = true;
    await post(`/admin/upstreams/${encodeURIComponent(id)}/${verb}`);
    button.blur();
    await load();
  };
  await load();
  return onReading(() => {
    load().catch(() => undefined);
    replace(attempts, attemptBars());
  });
}

function stateTable(rows, act) {
  const button = (row, verb) => h('button', { class: 'quiet small', onclick: (event) => act(row.id, verb, event.target) }, t(verb));
  return table(
    [
      { head: t('upstream'), cell: (row) => h('b', {}, row.id) },
      { head: t('provider'), cell: (row) => row.provider },
      { head: t('model'), cell: (row) => row.model_name },
      { head: t('status'), cell: (row) => badge(row.state, KINDS[row.state]) },
      { head: t('failures'), number: true, cell: (row) => number(row.consecutive_failures) },
      { head: t('until'), cell: (row) => time(row.until) },
      { head: `${t('models')}, ${t('weight')}`, cell: (row) => weightsOf(row, rows) },
      { head: '', cell: (row) => h('span', { class: 'actions' }, row.state === 'drained' ? undefined : button(row, 'drain'), button(row, 'reset')) },
    ],
    rows,
    { empty: t('nothing'), label: t('upstreams') },
  );
}

function attemptBars() {
  const samples = newest().samples.get('hermes_upstream_attempts_total') ?? [];
  const rows = samples.map(({ labels, value }) => ({ label: `${labels.upstream} · ${labels.outcome}`, value })).sort((a, b) => (a.label < b.label ? -1 : 1));
  return rows.length === 0 ? h('p', { class: 'empty' }, t('nothing')) : bars(rows, { format: (value) => number(value) });
}

/** Of all upstreams, newest first. */
function changes(rows) {
  const found = rows.flatMap(({ id, changes: own }) => own.map((change) => ({ id, ...change }))).sort((a, b) => (a.at < b.at ? 1 : -1));
  if (found.length === 0) return h('p', { class: 'empty' }, t('nothing'));
  return h(
    'ul',
    { class: 'turns' },
    found
      .slice(0, MOST_CHANGES)
      .map(({ at, id, from, to, consecutive_failures: failures }) =>
        h(
          'li',
          {},
          h('small', {}, time(at)),
          h('b', {}, id),
          h('span', {}, badge(from, KINDS[from]), ' → ', badge(to, KINDS[to])),
          failures > 0 ? h('small', {}, `${number(failures)} ${t('failures')}`) : undefined,
        ),
      ),
  );
}

/** `model weight (share)`: of the upstreams that the model has, as they are written down. */
function weightsOf(row, rows) {
  return row.weights
    .map(({ model, weight }) => {
      const all = rows.flatMap(({ weights }) => weights).filter((other) => other.model === model);
      const sum = all.reduce((total, other) => total + other.weight, 0);
      return all.length > 1 ? `${model} ${number(weight)} (${percent(sum > 0 ? weight / sum : 0)})` : model;
    })
    .join(', ');
}
