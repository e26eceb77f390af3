import type { ToolCallFact } from '../contracts/exchange.ts';
import { isRecord } from '../wire/json.ts';

/** What a call came to, as the model is told. */
export interface ToolResult {
  status: ToolCallFact['status'];
  /** Text for the model: the tool's answer as it came, or why there is none. */
  content: string;
  /** The id under which the action was asked for. */
  requestId: string;
  /** Requests sent to the tool. */
  tries: number;
  ms: number;
  /** The tool was never reached: nothing can have happened. */
  unsent?: boolean;
  /** The tool refused (4xx): nothing has happened. */
  refused?: boolean;
}

export function failure(status: ToolResult['status'], message: string, requestId: string, more: Partial<ToolResult> = {}): ToolResult {
  const { tries = 0, ms = 0 } = more;
  return { status, content: JSON.stringify({ error: { type: `tool_${status}`, message } }), requestId, tries, ms, ...more };
}

export function unavailable(name: string): ToolResult {
  return failure('unavailable', `tool not available: ${name.slice(0, 128)}`, '');
}

export function unknownOutcome(requestId: string, more: Partial<ToolResult> = {}): ToolResult {
  return failure(
    'unknown',
    'The outcome of this call is unknown: it may have been carried out. Do not call it again; tell the user to check.',
    requestId,
    more,
  );
}

/** A stored result; undefined when it is none. */
export function toResult(text: string): ToolResult | undefined {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || typeof value.content !== 'string' || !isStatus(value.status)) return undefined;
  const requestId = typeof value.requestId === 'string' ? value.requestId : '';
  return { status: value.status, content: value.content, requestId, tries: 0, ms: 0 };
}

/** A stored result, as it is given again. */
export function toReplay(text: string): ToolResult | undefined {
  const result = toResult(text);
  return result && { ...result, status: result.status === 'ok' ? 'replayed' : result.status };
}

const STATUSES: readonly string[] = ['ok', 'error', 'timeout', 'unavailable', 'invalid', 'replayed', 'unknown'] satisfies ToolResult['status'][];
function isStatus(value: unknown): value is ToolResult['status'] {
  return typeof value === 'string' && STATUSES.includes(value);
}
