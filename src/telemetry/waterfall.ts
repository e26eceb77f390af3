import type { Span } from '../contracts/exchange.ts';

/** Two readings of the clock. Milliseconds. */
const EPSILON = 0.0005;
/** A shorter time between two steps is the way from one to the next: it counts as the next one's. */
const STEP = 0.5;
const NO_ATTRIBUTES: Span['attributes'] = Object.freeze({});

/**
 * The spans of a request that took `durationMs`, in order, with hermes' own time between them as spans too: `receive` until
 * the first step, `hermes` between steps, `respond` after the last. So a request without anything side by side is the sum
 * of its spans, and in every one each moment belongs to a span.
 */
export function toWaterfall(recorded: readonly Span[], durationMs: number): Span[] {
  const clipped = recorded
    .filter(({ startMs }) => startMs <= durationMs)
    .map((span) => ({ ...span, startMs: Math.max(0, span.startMs), endMs: Math.min(Math.max(span.endMs, span.startMs, 0), durationMs) }));
  clipped.sort((a, b) => a.startMs - b.startMs || b.endMs - a.endMs);
  const whole: Span[] = [];
  let covered = 0;
  const fill = (until: number, name: string): void => {
    if (until - covered > EPSILON) whole.push({ name, startMs: covered, endMs: until, attributes: NO_ATTRIBUTES });
  };
  for (const span of clipped) {
    const gap = span.startMs - covered;
    if (gap > 0 && gap < STEP && whole.length > 0) span.startMs = covered;
    fill(span.startMs, whole.length === 0 ? 'receive' : 'hermes');
    whole.push(span);
    covered = Math.max(covered, span.endMs);
  }
  fill(durationMs, whole.length === 0 ? 'receive' : 'respond');
  const parents = parentsOf(whole);
  return whole.map((span, at) => {
    const parent = parents[at];
    return parent === undefined ? span : { ...span, parent };
  });
}

/** For each span, in order, the index of the span that it lies in; undefined: it stands for itself. */
function parentsOf(spans: readonly Pick<Span, 'startMs' | 'endMs'>[]): (number | undefined)[] {
  const open: number[] = [];
  return spans.map((span, at) => {
    for (;;) {
      const last = open.at(-1);
      const around = last === undefined ? undefined : spans[last];
      if (last === undefined || around === undefined) break;
      if (span.startMs < around.endMs - EPSILON && span.endMs <= around.endMs + EPSILON) {
        open.push(at);
        return last;
      }
      open.pop();
    }
    open.push(at);
    return undefined;
  });
}
