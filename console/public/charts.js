import { h } from './dom.js';

/** Bars with their values beside them. `rows`: `{ label, value, note, compare }`. */
export function bars(rows, { format = String } = {}) {
  const most = Math.max(1e-12, ...rows.map(({ value, compare }) => Math.max(value, compare ?? 0)));
  const width = (value) => `${Math.max(0.4, (100 * value) / most).toFixed(2)}%`;
  return h(
    'div',
    { class: 'bars' },
    rows.map(({ label, value, note, compare }) =>
      h(
        'div',
        { class: 'bar-row' },
        h('span', { class: 'bar-label', title: label }, label),
        h(
          'span',
          { class: 'bar-track' },
          h('span', { class: 'bar', style: { width: width(value) } }),
          !compare ? undefined : h('span', { class: 'bar before', style: { width: width(compare) } }),
        ),
        h('span', { class: 'bar-value' }, format(value), note ? h('small', {}, ` ${note}`) : undefined),
      ),
    ),
  );
}

/** The steps of a request where they lie in its time. */
export function waterfall(spans, durationMs, { format, describe }) {
  const part = (milliseconds) => `${((100 * milliseconds) / Math.max(durationMs, 1e-6)).toFixed(3)}%`;
  return h(
    'div',
    { class: 'waterfall', role: 'list' },
    spans.map((span) => {
      const kind = span.name === 'attempt' ? 'call' : span.name.startsWith('tool ') ? 'tool' : span.name.startsWith('store') ? 'store' : '';
      const failed =
        (span.attributes.outcome ?? span.attributes.status ?? 'ok') !== 'ok' && kind !== '' && kind !== 'store' && span.attributes.outcome !== 'ok';
      return h(
        'div',
        { class: 'span-row', role: 'listitem' },
        h('span', { class: `span-name${span.parent === null ? '' : ' inner'}` }, span.name),
        h(
          'span',
          { class: 'span-track' },
          h('span', {
            class: `span-bar ${kind} ${failed ? 'failed' : ''}`,
            style: { left: part(span.start_ms), width: `max(2px, ${part(span.duration_ms)})` },
          }),
        ),
        h('span', { class: 'span-time' }, format(span.duration_ms)),
        h('span', { class: 'span-note' }, describe(span)),
      );
    }),
  );
}
