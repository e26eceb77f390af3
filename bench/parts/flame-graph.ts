import type { Frame } from './cpu-profile.ts';

const WIDTH = 1200;
const ROW = 17;
/** Narrower is no more than a line. */
const LEAST_SHARE = 0.0005;
const HUES: readonly [test: RegExp, hue: number][] = [
  [/^\(/, 0],
  [/^node:/, 210],
  [/^(src|plugins)\//, 145],
];
const OTHER_HUE = 40;

/** One page without anything from elsewhere: a box is a call, as wide as its time, under its caller; a click makes it as wide as the page. */
export function toFlameGraph(tree: Frame, title: string): string {
  const boxes: string[] = [];
  let deepest = 0;
  const draw = (frame: Frame, from: number, depth: number): void => {
    const share = frame.total / tree.total;
    if (share < LEAST_SHARE) return;
    deepest = Math.max(deepest, depth);
    const label = `${frame.name}${frame.place ? ` (${frame.place})` : ''}`;
    const told = `${label}: ${(share * 100).toFixed(2)} %, itself ${((frame.self / tree.total) * 100).toFixed(2)} %`;
    boxes.push(
      `<i data-f="${from.toFixed(6)}" data-w="${share.toFixed(6)}" data-d="${depth}" style="--h:${hueOf(frame)}" title="${escapeHtml(told)}">${escapeHtml(label)}</i>`,
    );
    let at = from;
    for (const child of frame.children.toSorted((a, b) => b.total - a.total)) {
      draw(child, at, depth + 1);
      at += child.total / tree.total;
    }
  };
  draw(tree, 0, 0);
  return `<!doctype html><meta charset="utf-8"><title>${escapeHtml(title)}</title>
<style>
  body { font: 13px system-ui, sans-serif; margin: 16px; background: #fff; color: #1f2328 }
  #graph { position: relative; width: ${WIDTH}px; max-width: 100%; height: ${(deepest + 1) * ROW}px }
  i { position: absolute; box-sizing: border-box; height: ${ROW - 1}px; overflow: hidden; white-space: nowrap; font-style: normal; font-size: 11px; padding: 0 3px;
    border-radius: 2px; cursor: pointer; background: hsl(var(--h) 60% 78%); color: #1f2328 }
  i:hover { background: hsl(var(--h) 70% 68%) }
  i.found { outline: 2px solid #cf222e }
</style>
<h1 style="font-size:16px">${escapeHtml(title)}</h1>
<p>Green: hermes; blue: Node; yellow: libraries; red: V8. A click zooms, one on the first box goes back. <input id="find" placeholder="find a function"></p>
<div id="graph">${boxes.join('')}</div>
<script>
  const boxes = [...document.querySelectorAll('i')].map((box) => ({ box, from: +box.dataset.f, share: +box.dataset.w, depth: +box.dataset.d }));
  function show(from, share) {
    for (const { box, from: f, share: w, depth } of boxes) {
      const left = Math.max(0, (f - from) / share), right = Math.min(1, (f + w - from) / share);
      box.hidden = right - left < ${LEAST_SHARE};
      box.style.cssText = '--h:' + box.style.getPropertyValue('--h') + ';left:' + left * 100 + '%;width:' + (right - left) * 100 + '%;top:' + (height - depth) * ${ROW} + 'px';
    }
  }
  for (const each of boxes) each.box.onclick = () => show(each.from, each.share);
  document.querySelector('#find').oninput = ({ target }) => {
    for (const { box } of boxes) box.classList.toggle('found', target.value !== '' && box.title.includes(target.value));
  };
  show(0, 1);
</script>
`;
}

function hueOf({ name, place }: Frame): number {
  // What has no place and no parentheses is compiled into Node.
  const told = place === '' && !name.startsWith('(') ? 'node:' : place || name;
  return HUES.find(([test]) => test.test(told))?.[1] ?? OTHER_HUE;
}
function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
