import { h, svg } from './dom.js';

/** Lines over time. `series`: `{ label, kind, points: [[milliseconds, value]] }`; `format` writes a value. */
export function lineChart(label, series, { format = String, height = 150 } = {}) {
  const width = 560;
  const [left, right, top, bottom] = [4, 4, 10, 4];
  const points = series.flatMap((one) => one.points).filter(([, value]) => Number.isFinite(value));
  const last = series.map((one) => ({ ...one, value: one.points.findLast(([, value]) => Number.isFinite(value))?.[1] }));
  const legend = h(
    'div',
    { class: 'legend' },
    last.map((one) => h('span', { class: `key ${one.kind}` }, `${one.label} `, h('b', {}, one.value === undefined ? '–' : format(one.value)))),
  );
  const times = points.map(([at]) => at);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const most = Math.max(1e-9, ...points.map(([, value]) => value));
  const x = (at) => left + ((width - left - right) * (at - from)) / Math.max(1, to - from);
  const y = (value) => height - bottom - ((height - top - bottom) * value) / most;
  const drawn = series.map(({ kind, points: own }) => {
    const good = own.filter(([, value]) => Number.isFinite(value));
    if (good.length < 2) return undefined;
    const path = good.map(([at, value], index) => `${index === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('');
    return svg('path', { d: path, class: `line ${kind}`, 'vector-effect': 'non-scaling-stroke' });
  });
  const grid = [0, 0.5, 1].map((part) => svg('line', { x1: left, x2: width - right, y1: y(most * part), y2: y(most * part), class: 'grid' }));
  const chart = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'chart', role: 'img', 'aria-label': label }, grid, drawn);
  const top_ = points.length > 0 ? format(most) : '';
  return h('div', { class: 'chart-box' }, legend, h('div', { class: 'chart-frame' }, h('span', { class: 'chart-top' }, top_), chart));
}

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
