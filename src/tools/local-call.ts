import type { LocalTool } from '../contracts/local-tool.ts';
import { longIntegersAsText, stringifyJson } from '../wire/json.ts';
import { MAX_QUOTED, MAX_RESULT_BYTES, type ToolCallInput, type Try, tooLarge } from './tries.ts';
import { withinTime } from './within-time.ts';

/** Calls a tool that a plugin added. Rejects only when the call's own `signal` ends it; a function that goes on after its time is not waited for. */
export function callLocally({ tool, requestId, sessionId, user, params, signal }: ToolCallInput<LocalTool>): Promise<Try> {
  const work = async (limit: AbortSignal): Promise<Try> => {
    const ended = new Promise<never>((_resolve, reject) => limit.addEventListener('abort', () => reject(limit.reason), { once: true }));
    const plain = longIntegersAsText(params) as Record<string, unknown>;
    // An async function of its own: what the tool throws at once rejects like what it throws later.
    const answered = (async () => toText(await tool.run(plain, { requestId, sessionId, user, signal: limit })))();
    const text = await Promise.race([answered, ended]);
    return Buffer.byteLength(text) > MAX_RESULT_BYTES ? tooLarge() : { kind: 'ok', text };
  };
  return withinTime(tool, signal, work, toFailed);
}

function toFailed(thrown: unknown): Try {
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  return { kind: 'failed', message: `The tool failed: ${said.slice(0, MAX_QUOTED)}`, refused: false, passing: true };
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : (stringifyJson(value) ?? '');
}
