/** As much of a Grafana dashboard's look as a picture needs: its panels where they are, drawn of the answers to their own queries. */
export interface Panel {
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; legendFormat?: string }[];
  fieldConfig: { defaults: { unit?: string } };
}
export interface Series {
  labels: Record<string, string>;
  points: [number, number][];
}
const [CELL_W, CELL_H, GAP, TOP] = [50, 30, 8, 36];
const COLOURS = ['#73bf69', '#f2cc0c', '#5794f2', '#ff9830', '#f2495c', '#b877d9', '#8ab8ff'];
const toText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function show(value: number | undefined, unit = ''): string {
  if (value === undefined || Number.isNaN(value)) return '–';
  const digits = (number: number): string => (Math.abs(number) >= 100 ? number.toFixed(0) : Math.abs(number) >= 10 ? number.toFixed(1) : number.toFixed(2));
  if (unit === 's') return value < 1 ? `${digits(value * 1000)} ms` : `${digits(value)} s`;
  if (unit === 'percentunit') return `${digits(value * 100)} %`;
  if (unit === 'reqps') return `${digits(value)}/s`;
  if (unit === 'currencyUSD') return `$${digits(value)}`;
  return digits(value);
}

function drawStat(series: Series[], unit: string | undefined, width: number, height: number): string {
  const value = show(series[0]?.points.at(-1)?.[1], unit);
  return `<text x="${width / 2}" y="${height / 2 + 22}" font-size="30" fill="#73bf69" text-anchor="middle">${value}</text>`;
}

function drawLines(named: { name: string; points: [number, number][] }[], unit: string | undefined, width: number, height: number): string {
  const [left, right, top, bottom] = [58, 12, 34, 26];
  const all = named.flatMap(({ points }) => points).filter(([, value]) => Number.isFinite(value));
  const [from, to] = [Math.min(...all.map(([at]) => at)), Math.max(...all.map(([at]) => at))];
  const most = Math.max(...all.map(([, value]) => value), 1e-9) * 1.1;
  const x = (at: number): number => left + ((at - from) / Math.max(1, to - from)) * (width - left - right);
  const y = (value: number): number => height - bottom - (value / most) * (height - top - bottom);
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = y(share * most);
    return `<line x1="${left}" x2="${width - right}" y1="${at}" y2="${at}" stroke="#2c3235"/><text x="${left - 6}" y="${at + 4}" font-size="11" fill="#9fa7b3" text-anchor="end">${show(share * most, unit)}</text>`;
  });
  const lines = named.map(({ points }, index) => {
    const path = points.filter(([, value]) => Number.isFinite(value)).map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    return `<polyline points="${path.join(' ')}" fill="none" stroke="${COLOURS[index % COLOURS.length]}" stroke-width="1.6"/>`;
  });
  let at = left;
  const legend = named.map(({ name }, index) => {
    const text = `<rect x="${at}" y="${height - 13}" width="10" height="3" fill="${COLOURS[index % COLOURS.length]}"/><text x="${at + 14}" y="${height - 8}" font-size="11" fill="#ccccdc">${toText(name)}</text>`;
    at += 26 + name.length * 6.5;
    return text;
  });
  return [...grid, ...lines, ...legend].join('');
}

async function drawPanel(panel: Panel, ask: (expression: string) => Promise<Series[]>): Promise<string> {
  const { x, y, w, h } = panel.gridPos;
  const [width, height] = [w * CELL_W - GAP, h * CELL_H - GAP];
  const { unit } = panel.fieldConfig.defaults;
  const named: { name: string; points: [number, number][] }[] = [];
  let first: Series[] = [];
  for (const { expr, legendFormat = '' } of panel.targets ?? []) {
    const answer = await ask(expr);
    if (first.length === 0) first = answer;
    for (const { labels, points } of answer) named.push({ name: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? ''), points });
  }
  const body = named.length === 0 ? '' : panel.type === 'stat' ? drawStat(first, unit, width, height) : drawLines(named, unit, width, height);
  const title = `<text x="12" y="20" font-size="13" fill="#ccccdc">${toText(panel.title)}</text>`;
  return `<g transform="translate(${x * CELL_W + GAP},${y * CELL_H + TOP})"><rect width="${width}" height="${height}" rx="3" fill="#181b1f" stroke="#22252b"/>${title}${body}</g>`;
}

export async function drawDashboard({ title, panels }: { title: string; panels: Panel[] }, ask: (expression: string) => Promise<Series[]>): Promise<string> {
  const shown = panels.filter(({ type, gridPos }) => (type === 'stat' || type === 'timeseries') && gridPos.y < 20);
  const drawn = [];
  for (const panel of shown) drawn.push(await drawPanel(panel, ask));
  const [width, height] = [24 * CELL_W + GAP, Math.max(...shown.map(({ gridPos }) => gridPos.y + gridPos.h)) * CELL_H + TOP + GAP];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="Inter,Helvetica,Arial,sans-serif"><title>${toText(title)}</title><rect width="${width}" height="${height}" fill="#111217"/><text x="${GAP + 4}" y="24" font-size="15" fill="#ffffff">${toText(title)}</text>${drawn.join('')}</svg>\n`;
}
