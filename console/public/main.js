import { get, signIn, signOut } from './api.js';
import { field, h, replace } from './dom.js';
import { language, setLanguage, t } from './i18n.js';
import { startLive, stopLive } from './live.js';
import { costs } from './pages/costs.js';
import { overview } from './pages/overview.js';
import { routes } from './pages/routes.js';
import { sessions } from './pages/sessions.js';
import { shadow } from './pages/shadow.js';
import { tools } from './pages/tools.js';
import { traces } from './pages/traces.js';
import { upstreams } from './pages/upstreams.js';

/** A page fills the element that it is given; what it returns is called when it is left. */
const PAGES = { overview, traces, routes, sessions, costs, upstreams, tools, shadow };
const NAMES = Object.keys(PAGES);
const app = document.getElementById('app');
let signedIn = false;
let leave;
/** Grows with every page that is opened: what an older one still loads is not shown. */
let visit = 0;

setLanguage(language());
applyTheme(storedTheme());
addEventListener('hashchange', show);
addEventListener('keydown', onKey);
show();

function show() {
  if (signedIn) showPage();
  else showLogin();
}

function showLogin(message) {
  const input = h('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' });
  const told = h('p', { class: 'refused', role: 'alert' }, message ?? '');
  const submit = async (event) => {
    event.preventDefault();
    signIn(input.value.trim(), endSession);
    try {
      await get('/admin/plugins');
    } catch (error) {
      signOut();
      told.textContent = error.status === 403 ? t('notAdmin') : error.message;
      input.select();
      return;
    }
    signedIn = true;
    startLive();
    show();
  };
  const form = h(
    'form',
    { class: 'login', onsubmit: submit },
    h('h1', {}, brand()),
    field(t('adminKey'), input),
    h('button', { class: 'primary' }, t('signIn')),
    told,
    h('p', { class: 'hint' }, t('keyKept')),
  );
  replace(app, h('main', { class: 'login-page' }, form, h('div', { class: 'corner' }, switches())));
  input.focus();
}

function endSession(message) {
  signOut();
  stopLive();
  leave?.();
  leave = undefined;
  signedIn = false;
  showLogin(message);
}

function brand() {
  return h('span', { class: 'brand' }, h('img', { src: '/console/icon.svg', alt: '', width: 22, height: 22 }), 'hermes');
}

function switches() {
  const other = language() === 'zh' ? 'en' : 'zh';
  const change = () => {
    setLanguage(other);
    show();
  };
  return [
    h('button', { class: 'quiet', onclick: change, lang: other === 'zh' ? 'zh-CN' : 'en' }, other === 'zh' ? '中文' : 'English'),
    h('button', { class: 'quiet', onclick: toggleTheme, 'aria-label': t('theme'), title: t('theme') }, '◐'),
  ];
}

/** `#/traces/some-id`: a page and what it is asked for. */
function place() {
  const [name = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  return { name: NAMES.includes(name) ? name : 'overview', rest: rest.map(decodeURIComponent) };
}

async function showPage() {
  const { name, rest } = place();
  leave?.();
  leave = undefined;
  const own = ++visit;
  const links = NAMES.map((page, index) =>
    h('a', { href: `#/${page}`, 'aria-current': page === name ? 'page' : undefined }, h('kbd', { 'aria-hidden': 'true' }, String(index + 1)), t(page)),
  );
  const out = h('button', { class: 'quiet', onclick: () => endSession() }, t('signOut'));
  const content = h('main', { id: 'content', tabindex: -1 });
  const body = h('div', { class: 'page' }, h('p', { class: 'empty' }, t('loading')));
  replace(content, h('header', { class: 'page-head' }, h('h1', {}, t(name))), body);
  replace(
    app,
    h(
      'div',
      { class: 'frame' },
      h('nav', { 'aria-label': 'hermes' }, brand(), h('div', { class: 'links' }, links), h('div', { class: 'switches' }, switches(), out)),
      content,
    ),
  );
  document.title = `${t(name)} · hermes`;
  try {
    const left = await PAGES[name](body, rest);
    if (own === visit) leave = left;
    else left?.();
  } catch (error) {
    if (own === visit) replace(body, h('p', { class: 'refused', role: 'alert' }, `${t('failed')}: ${error.message}`));
  }
}

function onKey(event) {
  if (!signedIn || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === 'Escape') {
    if (typing) event.target.blur();
    else if (place().rest.length > 0) location.hash = `#/${place().name}`;
    return;
  }
  if (typing) return;
  const page = NAMES[Number(event.key) - 1];
  if (page !== undefined) location.hash = `#/${page}`;
  else if (event.key === 'r') show();
  else if (event.key === '?') showHelp();
  else if (event.key === '/') {
    const search = document.querySelector('[data-search]');
    if (search) search.focus();
    else location.hash = '#/traces';
    event.preventDefault();
  }
}

function showHelp() {
  const dialog = h(
    'dialog',
    { 'aria-label': t('help') },
    h('h2', {}, t('help')),
    h('p', {}, t('helpText')),
    h('button', { class: 'primary', onclick: () => dialog.close() }, t('close')),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function storedTheme() {
  try {
    return localStorage.getItem('hermes-theme') ?? '';
  } catch {
    return '';
  }
}
function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}
function toggleTheme() {
  const shown = document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const next = shown === 'dark' ? 'light' : 'dark';
  applyTheme(next);
  try {
    localStorage.setItem('hermes-theme', next);
  } catch {
    // Only until the page is closed.
  }
}
