import { get, post } from '../api.js';
import { bars } from '../charts.js';
import { badge, card, field, h, replace, table } from '../dom.js';
import { number, percent, time } from '../format.js';
import { t } from '../i18n.js';
import { newest, onReading } from '../live.js';
import { sumBy } from '../metrics.js';

export async function routes(body) {
  const { rules, lint, default_model, statistics } = await get('/admin/routes');
  const shares = h('div', {});
  replace(
    body,
    h('div', { class: 'two' }, card(t('playground'), playground()), card(t('hitShare'), shares, statisticsOf(statistics))),
    card(t('rules'), ruleTable(rules, default_model, statistics)),
    card(t('lint'), lintList(lint)),
  );
  return onReading(() => {
    const hits = new Map(sumBy(newest(), 'hermes_route_hits_total', 'route'));
    const total = [...hits.values()].reduce((sum, count) => sum + count, 0);
    const names = [...new Set([...rules.map(({ id }) => id), ...hits.keys()])];
    replace(
      shares,
      bars(
        names.map((label) => ({ label, value: hits.get(label) ?? 0, note: total > 0 ? percent((hits.get(label) ?? 0) / total) : '' })),
        { format: (value) => number(value) },
      ),
    );
  });
}

/** Whether more than usual falls to the default, and how far a rollout is. */
function statisticsOf({ default_share: share, usual_default_share: usual, drifting, rollout }) {
  const usually = usual === null ? '' : ` (${t('usually')} ${percent(usual)})`;
  return h(
    'p',
    {},
    share === null ? undefined : `${t('defaultShare')}: ${percent(share)}${usually} `,
    drifting ? badge(t('drifting'), 'warn') : undefined,
    rollout === null ? undefined : ` ${t('rollout')}: ${rollout.percent} % / ${rollout.by}, ${number(rollout.candidate)} : ${number(rollout.live)}`,
  );
}

function ruleTable(rules, defaultModel, statistics) {
  const lastHits = new Map(statistics.rules.map(({ rule, last_hit }) => [rule, last_hit]));
  return table(
    [
      { head: '#', number: true, cell: (rule) => rule.place },
      { head: t('id'), cell: (rule) => h('b', {}, rule.id) },
      { head: t('match'), cell: (rule) => h('code', { class: 'match' }, typeof rule.match === 'string' ? `/${rule.match}/` : JSON.stringify(rule.match)) },
      { head: t('model'), cell: (rule) => (rule.model === 'default_model' ? `${defaultModel} (default_model)` : rule.model) },
      { head: t('tools'), cell: (rule) => (rule.tools ?? []).join(', ') || '–' },
      { head: t('lastHit'), cell: (rule) => time(lastHits.get(rule.id)) },
    ],
    rules.map((rule, index) => ({ ...rule, place: index + 1 })),
    { empty: t('nothing'), label: t('rules') },
  );
}

function lintList(lint) {
  if (lint.length === 0) return h('p', { class: 'empty' }, t('lintClean'));
  return h(
    'ul',
    { class: 'lint' },
    lint.map(({ level, rule, line, message }) =>
      h('li', {}, badge(level, level === 'error' ? 'bad' : 'warn'), ' ', rule ? h('b', {}, rule) : '', line ? ` (${line})` : '', ' ', message),
    ),
  );
}

function playground() {
  const out = h('div', { 'aria-live': 'polite' });
  const form = h(
    'form',
    { class: 'stack' },
    field(t('message'), h('textarea', { name: 'message', rows: 3, required: true, 'data-search': true })),
    h(
      'div',
      { class: 'filters' },
      field(t('session'), h('input', { name: 'session_id', size: 12 })),
      field(t('userLevel'), h('input', { name: 'user_level', size: 8 })),
      field(t('service'), h('input', { name: 'service_type', size: 10 })),
      field(t('asKey'), h('input', { name: 'as_key', size: 10 })),
      h('button', { class: 'primary' }, t('tryIt')),
    ),
    out,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''));
    try {
      replace(out, decision(await post('/debug/route', given)));
    } catch (error) {
      replace(out, h('p', { class: 'refused' }, error.message));
    }
  });
  return form;
}

function decision(answer) {
  const model =
    answer.model_before_cost && answer.model_before_cost !== answer.model
      ? `${answer.model_before_cost} → ${answer.model} (${answer.cost_rule})`
      : answer.model;
  return h(
    'div',
    { class: 'decision' },
    h('p', { class: 'verdict' }, badge(answer.rule, 'good'), ' → ', h('b', {}, model)),
    h('p', {}, answer.why),
    h(
      'div',
      { class: 'states' },
      (answer.upstreams ?? []).map((one) =>
        h(
          'span',
          { class: `state ${one.state}` },
          h('span', { class: 'dot' }),
          one.upstream,
          h('small', {}, `${t('weight')} ${one.weight} · ${one.state}${one.picked ? ` · ${t('picked')}` : ''}`),
        ),
      ),
    ),
    h(
      'dl',
      { class: 'facts' },
      [
        ['session', answer.session],
        ['trim', answer.trim],
        ['tools', answer.tools],
        ['unavailable_tools', answer.unavailable_tools],
      ]
        .filter(([, value]) => value !== undefined && value !== null)
        .map(([name, value]) => [h('dt', {}, name), h('dd', {}, Array.isArray(value) ? value.join(', ') || '–' : JSON.stringify(value))]),
    ),
    (answer.earlier ?? []).length > 0
      ? h(
          'details',
          {},
          h('summary', {}, `${t('missed')} (${answer.earlier.length})`),
          h(
            'ul',
            {},
            answer.earlier.map(({ rule, why }) => h('li', {}, h('b', {}, rule), `: ${why}`)),
          ),
        )
      : undefined,
  );
}
