import { readMetrics } from './metrics.js';

/** The newest readings of the metrics, taken while somebody is signed in, whichever page is open. */
const EVERY_MS = 2000;
const KEPT = 180;
const listeners = new Set();
let readings = [];
let timer;

export function startLive() {
  stopLive();
  readings = [];
  const tick = async () => {
    try {
      readings = [...readings.slice(1 - KEPT), await readMetrics()];
      for (const listener of listeners) listener();
    } catch {
      // The gateway is away for a moment, or the key has gone: the next one tells.
    }
    timer = setTimeout(tick, document.hidden ? EVERY_MS * 5 : EVERY_MS);
  };
  timer = setTimeout(tick, 0);
}
export function stopLive() {
  clearTimeout(timer);
  listeners.clear();
}

export const allReadings = () => readings;
export const newest = () => readings.at(-1);
/** The reading of about so long ago. */
export function earlier(milliseconds) {
  const last = newest();
  return last && (readings.find(({ at }) => at >= last.at - milliseconds) ?? readings[0]);
}
/** Runs at every new reading, and once now; gives the way to stop it. */
export function onReading(listener) {
  listeners.add(listener);
  if (readings.length > 0) listener();
  return () => listeners.delete(listener);
}
