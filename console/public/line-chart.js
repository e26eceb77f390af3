import { h } from './dom.js';
import { language } from './i18n.js';

const HEIGHT = 170;
const COLOURS = { a: '--accent', b: '--b', bad: '--bad' };
let library;

/** uPlot, loaded when the first chart is drawn: the sign-in does not wait for it. */
function load() {
  library ??= new Promise((resolve, reject) => {
    document.head.append(h('link', { rel: 'stylesheet', href: '/console/uplot.css' }));
    document.head.append(h('script', { src: '/console/uplot.js', onload: () => resolve(globalThis.uPlot), onerror: () => reject(new Error('uplot.js')) }));
  });
  return library;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Lines over time, with their values where the pointer is. `series`: `{ label, kind }`; `format` writes a value.
 * Gives the element and `set([[milliseconds, …], [value, …], …])`, to be called whenever there is something new.
 */
export function lineChart(label, series, format) {
  const box = h('div', { class: 'line-chart', role: 'img', 'aria-label': label });
  let chart;
  let newest = [[], ...series.map(() => [])];
  const fit = () => chart?.setSize({ width: Math.max(120, box.clientWidth), height: HEIGHT });
  const observer = new ResizeObserver(fit);
  observer.observe(box);
  load().then(
    (UPlot) => {
      chart = new UPlot(optionsOf(UPlot, series, format, box.clientWidth), newest, box);
      fit();
    },
    () => box.append('–'),
  );
  return {
    element: box,
    set(data) {
      newest = data.map((values, index) => values.map((value) => (index === 0 ? value / 1000 : Number.isFinite(value) ? value : null)));
      chart?.setData(newest);
    },
    close() {
      observer.disconnect();
      chart?.destroy();
    },
  };
}

function optionsOf(UPlot, series, format, width) {
  const axis = {
    stroke: () => colour('--soft'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: () => colour('--line'), width: 1 },
    ticks: { show: false },
  };
  const clock = new Intl.DateTimeFormat(language() === 'zh' ? 'zh-CN' : 'en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
  const time = (seconds) => (seconds === null ? '–' : clock.format(seconds * 1000));
  return {
    width: Math.max(120, width),
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 7 } },
    scales: { y: { range: (_chart, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      { ...axis, values: (_chart, ticks) => ticks.map(time), space: 90, size: 26 },
      { ...axis, values: (_chart, ticks) => ticks.map(format), space: 28, size: 62 },
    ],
    series: [
      { label: '', value: (_chart, value) => time(value) },
      ...series.map(({ label, kind }) => ({
        label,
        stroke: () => colour(COLOURS[kind]),
        width: 1.8,
        spanGaps: true,
        paths: UPlot.paths.linear(),
        points: { show: false },
        value: (chart, value, _series, index) => format(value ?? chart.data[_series]?.[index ?? chart.data[0].length - 1] ?? Number.NaN),
      })),
    ],
  };
}
