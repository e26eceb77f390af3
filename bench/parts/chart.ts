/** One group of bars: a scenario, and each contestant's throughput to the first one's. */
export interface BarGroup {
  title: string;
  bars: readonly { label: string; ratio: number }[];
}

const WIDTH = 860;
const LEFT = 120;
const BAR = 18;
const GAP = 6;
const HEAD = 34;
const TOP = 30;
/** Where a bar of 1 ends; who is faster than the first may reach beyond, to the edge. */
const UNIT = (WIDTH - LEFT - 70) / 1.6;
const LONGEST = WIDTH - LEFT - 60;

/** Horizontal bars in light and dark, without anything from elsewhere. */
export function toChart(groups: readonly BarGroup[], caption: string): string {
  let y = TOP;
  const parts: string[] = [];
  for (const { title, bars } of groups) {
    parts.push(`<text class="title" x="12" y="${y + 20}">${escapeXml(title)}</text>`);
    y += HEAD;
    for (const { label, ratio } of bars) {
      const width = Math.max(1, Math.min(LONGEST, ratio * UNIT));
      parts.push(
        `<text class="label" x="${LEFT - 8}" y="${y + 13}">${escapeXml(label)}</text>`,
        `<rect class="${label === 'hermes' ? 'ours' : 'theirs'}" x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`,
        `<text class="value" x="${(LEFT + width + 6).toFixed(1)}" y="${y + 13}">${ratio.toFixed(2)}${ratio * UNIT > LONGEST ? ' →' : ''}</text>`,
      );
      y += BAR + GAP;
    }
    y += 8;
  }
  const height = y + 24;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(caption)}">
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 } .label { text-anchor: end } .caption { font-size: 11px; fill: #59636e }
  .ours { fill: #1a7f5a } .theirs { fill: #9aa4b2 } .floor { stroke: #59636e; stroke-dasharray: 3 3 } .ground { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .caption { fill: #9198a1 } .ours { fill: #3fb68b } .theirs { fill: #57606a } .floor { stroke: #9198a1 } .ground { fill: #0d1117 }
  }
</style>
<rect class="ground" width="${WIDTH}" height="${height}" rx="6"/>
<line class="floor" x1="${LEFT + UNIT}" y1="${TOP + 4}" x2="${LEFT + UNIT}" y2="${y - 4}"/>
${parts.join('\n')}
<text class="caption" x="12" y="${height - 10}">${escapeXml(caption)}</text>
</svg>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
