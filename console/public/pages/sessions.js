import { get, withQuery } from '../api.js';
import { badge, card, field, h, replace, table, tile } from '../dom.js';
import { milliseconds, number, time, usd } from '../format.js';
import { t } from '../i18n.js';
import { bubble } from './traces.js';

export async function sessions(body, [project, id]) {
  if (id !== undefined) return showSession(body, project, id);
  const form = h(
    'form',
    { class: 'filters', role: 'search' },
    field(t('project'), h('input', { name: 'project', size: 14 })),
    field(t('session'), h('input', { name: 'id', size: 28, 'data-search': true })),
    h('button', { class: 'primary' }, t('search')),
  );
  const list = h('div', {});
  replace(body, card('', form), list);
  const load = async () => {
    const given = new FormData(form);
    const wanted = String(given.get('id')).trim();
    const of = String(given.get('project')).trim();
    if (wanted) location.hash = `#/sessions/${encodeURIComponent(of || 'default')}/${encodeURIComponent(wanted)}`;
    else await page(list, of);
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    load();
  });
  await load();
}

async function page(list, project) {
  const rows = [];
  const next = async (cursor) => {
    const { data, next_cursor } = await get(withQuery('/admin/sessions', { project, limit: 50, cursor }));
    rows.push(...data);
    const more = next_cursor === null ? undefined : h('button', { class: 'quiet', onclick: () => next(next_cursor) }, t('more'));
    replace(list, card('', sessionTable(rows), more));
  };
  await next();
}

function sessionTable(rows) {
  return table(
    [
      { head: t('updated'), cell: (row) => time(row.updated_at) },
      { head: t('project'), cell: (row) => row.project },
      { head: t('session'), cell: (row) => h('b', {}, row.session_id) },
      { head: t('messages'), number: true, cell: (row) => number(row.messages) },
      { head: t('tokens'), number: true, cell: (row) => number(row.tokens) },
      { head: t('models'), cell: (row) => row.models.join(', ') },
    ],
    rows,
    {
      open: (row) => {
        location.hash = `#/sessions/${encodeURIComponent(row.project)}/${encodeURIComponent(row.session_id)}`;
      },
      empty: t('nothing'),
      label: t('sessions'),
    },
  );
}

async function showSession(body, project, id) {
  const [view, turns] = await Promise.all([
    get(withQuery(`/admin/sessions/${encodeURIComponent(id)}`, { project })),
    get(withQuery('/admin/traces', { session_id: id, limit: 50 })),
  ]);
  const own = turns.data.filter((turn) => (turn.project ?? project) === project);
  const leftOut = leftOutOf(view.messages, own);
  replace(
    body,
    h('p', { class: 'crumbs' }, h('a', { href: '#/sessions' }, `← ${t('sessions')}`), ' ', h('code', {}, `${project} / ${id}`)),
    h(
      'div',
      { class: 'tiles' },
      tile(t('messages'), number(view.total_messages)),
      tile(t('tokens'), number(view.tokens)),
      tile(t('callCount'), number(view.calls), (view.models ?? []).join(', ')),
      tile(t('cost'), usd(view.cost_usd)),
    ),
    h(
      'div',
      { class: 'two' },
      card(
        t('messages'),
        h(
          'div',
          { class: 'talk' },
          view.system.map(messageOf),
          view.messages.map((message, at) => messageOf(message, leftOut.has(at))),
        ),
      ),
      card(t('turns'), turnList(own)),
    ),
  );
}

/**
 * Places of the messages that the newest turn did not send, to fit its model: the oldest of the history that was recalled, which
 * ends before the turn's own question.
 */
function leftOutOf(messages, turns) {
  const newest = turns.find(({ status }) => status < 400);
  const count = newest?.trimmed_messages ?? 0;
  const end = messages.findLastIndex(({ role }) => role === 'user');
  const begin = Math.max(0, end - (newest?.session_messages ?? end));
  return new Set(Array.from({ length: Math.min(count, Math.max(0, end - begin)) }, (_, index) => begin + index));
}

function messageOf(message, left) {
  const marks = [
    h('small', {}, `${number(message.tokens)} ${t('tokens')}`),
    left === true ? badge(t('leftOut'), 'warn') : undefined,
    message.partial ? badge(t('partial'), 'warn') : undefined,
    message.degraded ? badge(t('degraded'), 'warn') : undefined,
  ];
  const calls = (message.tool_calls ?? []).map((call) => `→ ${call.function?.name}(${call.function?.arguments ?? ''})`).join('\n');
  const text = typeof message.content === 'string' ? message.content : message.content ? JSON.stringify(message.content) : '';
  return bubble(message.role, [text, calls].filter(Boolean).join('\n'), marks);
}

function turnList(turns) {
  if (turns.length === 0) return h('p', { class: 'empty' }, t('nothing'));
  return h(
    'ul',
    { class: 'turns' },
    turns.map((turn) =>
      h(
        'li',
        {},
        h('a', { href: `#/traces/${encodeURIComponent(turn.id)}` }, time(turn.started_at)),
        h('span', {}, turn.model || '–', turn.degraded ? [' ', badge(t('degraded'), 'warn')] : ''),
        h(
          'small',
          {},
          `${milliseconds(turn.duration_ms)} · ${t('context')} ${number(turn.context_tokens ?? 0)} ${t('tokens')} · ${number(turn.trimmed_messages ?? 0)} ${t('trimmed')}`,
        ),
      ),
    ),
  );
}
