import { get, withQuery } from '../api.js';
import { waterfall } from '../charts.js';
import { badge, card, field, h, replace, table, tile } from '../dom.js';
import { milliseconds, number, short, statusKind, time, usd } from '../format.js';
import { t } from '../i18n.js';

export function traceTable(rows) {
  return table(
    [
      { head: t('time'), cell: (trace) => time(trace.started_at) },
      { head: t('status'), cell: (trace) => [badge(String(trace.status), statusKind(trace.status)), marks(trace)] },
      { head: t('route'), cell: (trace) => trace.route || '–' },
      { head: t('model'), cell: (trace) => trace.model || '–' },
      { head: t('service'), cell: (trace) => trace.service || '–' },
      { head: t('session'), cell: (trace) => (trace.session_id === null ? '–' : short(trace.session_id, 24)) },
      { head: t('duration'), number: true, cell: (trace) => milliseconds(trace.duration_ms) },
      { head: t('tokens'), number: true, cell: (trace) => number(trace.tokens.input + trace.tokens.output) },
      { head: t('cost'), number: true, cell: (trace) => usd(trace.cost_usd) },
      { head: t('id'), cell: (trace) => h('code', {}, short(trace.id)) },
    ],
    rows,
    { open: open, empty: t('nothing'), label: t('traces') },
  );
}

function marks(trace) {
  return [trace.degraded ? badge(t('degraded'), 'warn') : undefined, trace.replayed ? badge(t('replayed')) : undefined];
}
function open(trace) {
  location.hash = `#/traces/${encodeURIComponent(trace.id)}`;
}

export async function traces(body, [id]) {
  if (id !== undefined) return showTrace(body, id);
  const input = (name, props = {}) => h('input', { name, ...props });
  const form = h(
    'form',
    { class: 'filters', role: 'search' },
    field(t('search'), input('id', { type: 'search', placeholder: t('searchTrace'), 'data-search': true, size: 38 })),
    field(t('route'), input('route', { size: 12 })),
    field(t('status'), input('status', { inputmode: 'numeric', size: 5, pattern: '\\d{3}' })),
    field(t('session'), input('session_id', { size: 16 })),
    field(t('from'), input('from', { type: 'datetime-local' })),
    h('button', { class: 'primary' }, t('search')),
  );
  const list = h('div', {});
  replace(body, card('', form), list);
  const load = async () => {
    const given = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
    if (given.id) {
      location.hash = `#/traces/${encodeURIComponent(given.id)}`;
      return;
    }
    const from = given.from ? new Date(given.from).toISOString() : '';
    await page(list, { route: given.route, status: given.status, session_id: given.session_id, from });
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    load();
  });
  await load();
}

async function page(list, filter) {
  const rows = [];
  const next = async (cursor) => {
    const { data, next_cursor } = await get(withQuery('/admin/traces', { ...filter, limit: 50, cursor }));
    rows.push(...data);
    const more = next_cursor === null ? undefined : h('button', { class: 'quiet', onclick: () => next(next_cursor) }, t('more'));
    replace(list, card('', traceTable(rows), more));
  };
  await next();
}

async function showTrace(body, id) {
  const trace = await get(`/admin/traces/${encodeURIComponent(id)}`);
  const tokens = trace.tokens;
  replace(
    body,
    h('p', { class: 'crumbs' }, h('a', { href: '#/traces' }, `← ${t('traces')}`), ' ', h('code', {}, trace.id)),
    h(
      'div',
      { class: 'tiles' },
      tile(t('status'), badge(String(trace.status), statusKind(trace.status)), trace.error),
      tile(t('duration'), milliseconds(trace.duration_ms), `${t('overhead')} ${milliseconds(trace.overhead_ms)}`),
      tile(t('firstToken'), milliseconds(trace.first_token_ms)),
      tile(t('tokens'), `${number(tokens.input)} → ${number(tokens.output)}`, `${t('cached')} ${number(tokens.cached)}`),
      tile(t('cost'), usd(trace.cost_usd)),
      tile(t('route'), trace.route || '–', `${trace.model || '–'}${trace.upstream ? ` · ${trace.upstream}` : ''}`),
    ),
    card(t('waterfall'), waterfall(trace.spans, trace.duration_ms, { format: milliseconds, describe })),
    card(t('calls'), callTable(trace.calls)),
    trace.tool_calls ? card(t('toolCalls'), toolTable(trace.tool_calls)) : undefined,
    h('div', { class: 'two' }, card(t('content'), contentOf(trace)), card(t('facts'), factsOf(trace))),
    card(t('replay'), curlBox(trace)),
  );
}

const TOLD = ['number', 'upstream', 'outcome', 'status', 'error', 'tier', 'messages', 'input_tokens', 'output_tokens', 'tries'];
function describe({ attributes }) {
  return TOLD.filter((name) => attributes[name] !== undefined)
    .map((name) => `${name} ${attributes[name]}`)
    .join(' · ');
}

function callTable(calls) {
  return table(
    [
      { head: t('upstream'), cell: (call) => call.upstream },
      { head: t('model'), cell: (call) => call.model },
      { head: t('outcome'), cell: (call) => badge(call.outcome, call.outcome === 'ok' ? 'good' : call.outcome === 'aborted' ? 'warn' : 'bad') },
      { head: t('status'), cell: (call) => call.status ?? '–' },
      { head: t('error'), cell: (call) => call.error ?? '–' },
      { head: t('firstToken'), number: true, cell: (call) => milliseconds(call.first_token_ms ?? Number.NaN) },
      { head: t('duration'), number: true, cell: (call) => milliseconds(call.duration_ms) },
      { head: t('tokens'), number: true, cell: (call) => `${number(call.tokens.input)} → ${number(call.tokens.output)}${call.estimated ? ' ≈' : ''}` },
      { head: t('cost'), number: true, cell: (call) => (call.cost_usd === null ? '–' : usd(call.cost_usd)) },
    ],
    calls,
    { empty: t('nothing') },
  );
}

function toolTable(calls) {
  return table(
    [
      { head: t('tools'), cell: (call) => call.tool },
      { head: t('status'), cell: (call) => badge(call.status, call.status === 'ok' || call.status === 'replayed' ? 'good' : 'warn') },
      { head: t('duration'), number: true, cell: (call) => milliseconds(call.ms) },
      { head: 'request_id', cell: (call) => h('code', {}, call.request_id) },
    ],
    calls,
  );
}

function contentOf({ content }) {
  if (!content) return h('p', { class: 'empty' }, t('noContent'));
  const said = (message) => (content.hashed ? `${message.hash} · ${number(message.characters)} ${t('characters')}` : (message.content ?? message));
  return h(
    'div',
    { class: 'talk' },
    (content.request ?? []).map((message) => bubble(message.role, said(message))),
    bubble('assistant', said(content.answer)),
  );
}

export function bubble(role, content, note) {
  const text = typeof content === 'string' ? content : content === null || content === undefined ? '' : JSON.stringify(content, null, 1);
  return h('div', { class: `bubble ${role}` }, h('div', { class: 'bubble-head' }, h('b', {}, role), note), h('div', { class: 'bubble-text' }, text));
}

const ELSEWHERE = new Set(['spans', 'calls', 'content', 'tool_calls', 'tokens', 'id']);
function factsOf(trace) {
  const entries = Object.entries(trace).filter(([name, value]) => !ELSEWHERE.has(name) && value !== null);
  const cell = (name, value) =>
    name === 'session_id'
      ? h('a', { href: `#/sessions/${encodeURIComponent(trace.project ?? 'default')}/${encodeURIComponent(value)}` }, value)
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
  return h(
    'dl',
    { class: 'facts' },
    entries.map(([name, value]) => [h('dt', {}, name), h('dd', {}, cell(name, value))]),
  );
}

/** The request again, as far as the trace knows it; the key comes from the shell. */
function toCurl(trace) {
  const body = {
    ...(trace.session_id === null ? {} : { session_id: trace.session_id }),
    ...(trace.route === 'none' && trace.model ? { prefer_model: trace.model } : {}),
    messages: (!trace.content?.hashed && trace.content?.request) || [{ role: 'user', content: '…' }],
    ...(trace.stream ? { stream: true } : {}),
  };
  const quoted = JSON.stringify(body).replaceAll("'", `'\\''`);
  return `curl ${location.origin}${trace.path ?? '/v1/chat/completions'} \\\n  -H "Authorization: Bearer $API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '${quoted}'`;
}

function curlBox(trace) {
  const text = toCurl(trace);
  const copy = async (event) => {
    await navigator.clipboard?.writeText(text);
    event.target.textContent = t('copied');
  };
  return [h('pre', { class: 'code', tabindex: 0 }, text), h('button', { class: 'quiet', onclick: copy }, t('copy'))];
}
