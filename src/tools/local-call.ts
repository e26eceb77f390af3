import type { LocalTool } from '../contracts/local-tool.ts';
import { longIntegersAsText, stringifyJson } from '../wire/json.ts';
import { MAX_QUOTED, MAX_RESULT_BYTES, type ToolCallInput, type Try, timedOut, tooLarge } from './tries.ts';

/** Calls a tool that a plugin added. Rejects only when the call's own `signal` ends it; a function that goes on after its time is not waited for. */
export async function callLocally({ tool, requestId, sessionId, user, params, signal }: ToolCallInput<LocalTool>): Promise<Try> {
  const limit = new AbortController();
  const ended = new Promise<never>((_resolve, reject) => limit.signal.addEventListener('abort', () => reject(limit.signal.reason), { once: true }));
  const timer = setTimeout(() => limit.abort(), tool.timeout_ms);
  const stop = (): void => limit.abort();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  try {
    const plain = longIntegersAsText(params) as Record<string, unknown>;
    // An async function of its own: what the tool throws at once rejects like what it throws later.
    const answered = (async () => toText(await tool.run(plain, { requestId, sessionId, user, signal: limit.signal })))();
    const text = await Promise.race([answered, ended]);
    return Buffer.byteLength(text) > MAX_RESULT_BYTES ? tooLarge() : { kind: 'ok', text };
  } catch (thrown) {
    if (signal?.aborted) throw signal.reason;
    if (limit.signal.aborted) return timedOut(tool);
    const said = thrown instanceof Error ? thrown.message : String(thrown);
    return { kind: 'failed', message: `The tool failed: ${said.slice(0, MAX_QUOTED)}`, refused: false, passing: true };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : (stringifyJson(value) ?? '');
}
