import { get } from '../api.js';
import { bars } from '../charts.js';
import { badge, card, h, replace, table } from '../dom.js';
import { milliseconds, number } from '../format.js';
import { t } from '../i18n.js';
import { newest, onReading } from '../live.js';

export async function tools(body) {
  const { data } = await get('/admin/tools');
  const calls = h('div', {});
  replace(body, card('', toolTable(data)), card(t('byStatus'), calls));
  return onReading(() => {
    const samples = newest().samples.get('hermes_tool_calls_total') ?? [];
    const rows = samples.map(({ labels, value }) => ({ label: `${labels.tool} · ${labels.status}`, value })).sort((a, b) => b.value - a.value);
    replace(calls, rows.length === 0 ? h('p', { class: 'empty' }, t('nothing')) : bars(rows, { format: (value) => number(value) }));
  });
}

function toolTable(rows) {
  return table(
    [
      { head: t('id'), cell: (tool) => h('b', {}, tool.id) },
      { head: t('description'), cell: (tool) => tool.description ?? '–' },
      { head: t('sideEffects'), cell: (tool) => (tool.side_effects ? badge(t('yes'), 'warn') : badge(t('no'))) },
      { head: t('timeout'), number: true, cell: (tool) => milliseconds(tool.timeout_ms) },
      { head: t('allowed'), cell: (tool) => `${tool.allow.services.join(', ')} / ${tool.allow.user_levels.join(', ')}` },
      { head: 'parameters', cell: (tool) => h('code', { class: 'match' }, Object.keys(tool.parameters?.properties ?? {}).join(', ') || '–') },
    ],
    rows,
    { empty: t('nothing'), label: t('tools') },
  );
}
