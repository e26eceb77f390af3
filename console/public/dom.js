/**
 * An element. Text only ever goes in as text, so nothing that a caller named itself can become markup.
 * `props`: `class`, `on…` listeners, `style` as an object (the content security policy forbids the attribute), others as attributes.
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(Number.POSITIVE_INFINITY).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Number.POSITIVE_INFINITY).filter(Boolean));
}

/** A table whose rows open something by mouse and keyboard. `columns`: `{ head, cell, number }`. */
export function table(columns, rows, { open, empty, label } = {}) {
  if (rows.length === 0) return h('p', { class: 'empty' }, empty ?? '');
  const head = h(
    'tr',
    {},
    columns.map(({ head: text, number }) => h('th', { scope: 'col', class: number ? 'number' : undefined }, text)),
  );
  const body = rows.map((row) =>
    h(
      'tr',
      open ? { class: 'opens', tabindex: 0, onclick: () => open(row), onkeydown: (event) => event.key === 'Enter' && open(row) } : {},
      columns.map(({ cell, number }) => h('td', { class: number ? 'number' : undefined }, cell(row))),
    ),
  );
  return h(
    'div',
    { class: 'scroll', role: 'region', 'aria-label': label ?? columns[0].head, tabindex: 0 },
    h('table', {}, h('thead', {}, head), h('tbody', {}, body)),
  );
}

export function badge(text, kind = '') {
  return h('span', { class: `badge ${kind}` }, text);
}

/** A labelled field. */
export function field(label, input) {
  return h('label', { class: 'field' }, h('span', {}, label), input);
}

export function card(title, ...children) {
  return h('section', { class: 'card' }, title ? h('h2', {}, title) : undefined, children);
}

export function tile(label, value, note) {
  return h(
    'div',
    { class: 'tile' },
    h('div', { class: 'tile-label' }, label),
    h('div', { class: 'tile-value' }, value),
    h('div', { class: 'tile-note' }, note ?? ''),
  );
}
