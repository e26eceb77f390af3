import { setTimeout as pause } from 'node:timers/promises';
import type { Environment } from '../contracts/telemetry.ts';
import type { RegisteredTool } from './registered-tool.ts';
import { failure, type ToolResult, unknownOutcome } from './result.ts';

/** Beyond it a result is no result: nothing sensible fits a context. */
export const MAX_RESULT_BYTES = 4 * 1024 ** 2;
export const MAX_QUOTED = 2000;
const RETRY_BASE_MS = 100;

/** One call of a tool, whatever it is spoken to by. */
export interface ToolCallInput<Tool extends RegisteredTool = RegisteredTool> {
  tool: Tool;
  requestId: string;
  sessionId: string | null;
  user: string | null;
  params: Record<string, unknown>;
  /** Ends a call that only reads; absent: it is completed, whoever leaves. */
  signal: AbortSignal | undefined;
}
/**
 * One try's fate. `failed`: the tool answered, and it is no result; `refused`: nothing was done; `passing`: it may work later.
 * `unsent`: the tool cannot have seen it. `unclear`: sent, and nobody knows what became of it.
 */
export type Try =
  | { kind: 'ok'; text: string }
  | { kind: 'failed'; message: string; refused: boolean; passing: boolean }
  | { kind: 'unsent' | 'unclear' | 'too_large' | 'timeout'; message: string };

/** Tries a call, and again as the tool allows. Never rejects but for the call's own signal: what goes wrong is a result. */
export async function runTries(
  { tool, requestId, signal }: ToolCallInput,
  retries: number,
  environment: Environment,
  once: () => Promise<Try>,
): Promise<ToolResult> {
  const began = performance.now();
  let tries = 0;
  let last: Try;
  do {
    if (tries > 0) await pause(RETRY_BASE_MS * 2 ** tries * environment.random(), undefined, { ...(signal ? { signal } : {}) });
    tries++;
    last = await once();
  } while (tries <= retries && isRetried(tool, last));
  return toResult(tool, requestId, last, { tries, ms: Math.round(performance.now() - began) });
}

/** A tool that changes something and has answered, whatever it said, is not asked again. */
function isRetried(tool: RegisteredTool, last: Try): boolean {
  if (last.kind === 'failed') return !tool.side_effects && last.passing;
  return last.kind !== 'ok' && last.kind !== 'too_large';
}

function toResult(tool: RegisteredTool, requestId: string, last: Try, spent: { tries: number; ms: number }): ToolResult {
  if (last.kind === 'ok') return { status: 'ok', content: last.text.trim() === '' ? '{"ok":true}' : last.text, requestId, ...spent };
  if (last.kind === 'failed') return failure('error', last.message, requestId, { ...spent, ...(last.refused ? { refused: true } : {}) });
  if (last.kind === 'unsent') return failure('error', last.message, requestId, { ...spent, unsent: true });
  if (tool.side_effects && last.kind !== 'too_large') return unknownOutcome(requestId, { ...spent, ...(last.kind === 'timeout' ? { status: 'timeout' } : {}) });
  return failure(last.kind === 'timeout' ? 'timeout' : 'error', last.message, requestId, spent);
}

export function timedOut(tool: RegisteredTool): Try {
  return { kind: 'timeout', message: `The tool did not answer within ${tool.timeout_ms} ms.` };
}
export function tooLarge(): Try {
  return { kind: 'too_large', message: `The tool's answer is larger than ${MAX_RESULT_BYTES} bytes.` };
}

/** Failures before a connection stood: the tool cannot have seen the request. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);
/** A call that was broken off by what `thrown` says. */
export function toBrokenTry(thrown: unknown): Try {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  return UNSENT.has(code) || code.startsWith('ERR_TLS') || code.startsWith('CERT_')
    ? { kind: 'unsent', message: 'The tool cannot be reached.' }
    : { kind: 'unclear', message: 'The connection to the tool broke before it answered.' };
}
