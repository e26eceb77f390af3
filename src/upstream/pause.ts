import type { Exchange } from '../contracts/exchange.ts';

/** Waits; false when the exchange was cancelled (or `stop` rang) meanwhile, and then at once. */
export function pause(exchange: Exchange, ms: number, stop?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const over = (whole: boolean): void => {
      clearTimeout(timer);
      release?.();
      resolve(whole);
    };
    let release: (() => void) | undefined;
    const timer = setTimeout(over, ms, true);
    release = exchange.onCancel(() => over(false));
    stop?.addEventListener('abort', () => over(false), { once: true });
  });
}
