import type { RegisteredTool } from './registered-tool.ts';
import { type Try, timedOut } from './tries.ts';

/**
 * One try that ends at the tool's time, or when `signal` ends it, which alone makes it reject. `work` is given what both abort;
 * `broken` says what anything else that it throws means.
 */
export async function withinTime(
  tool: RegisteredTool,
  signal: AbortSignal | undefined,
  work: (limit: AbortSignal) => Promise<Try>,
  broken: (thrown: unknown) => Try,
): Promise<Try> {
  if (signal?.aborted) throw signal.reason;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), tool.timeout_ms);
  const stop = (): void => limit.abort();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    return await work(limit.signal);
  } catch (thrown) {
    if (signal?.aborted) throw signal.reason;
    return limit.signal.aborted ? timedOut(tool) : broken(thrown);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}
