import { isRecord } from '../../src/wire/json.ts';

/**
 * How openai-python builds a completion out of chunks. Ported from its `lib/streaming/_deltas.py` (accumulate_delta): texts are
 * joined, so a role or a name that comes twice is there twice; a list's entries are told by their `index`, and one that is not
 * there yet is put at the end, so indexes must count from 0; what does not fit throws.
 */
export function accumulate(before: Record<string, unknown>, delta: Record<string, unknown>): Record<string, unknown> {
  for (const [key, value] of Object.entries(delta)) {
    const had = before[key];
    if (had === undefined || had === null || key === 'index' || key === 'type') before[key] = value;
    else if (typeof had === 'string' && typeof value === 'string') before[key] = had + value;
    else if (typeof had === 'number' && typeof value === 'number') before[key] = had + value;
    else if (isRecord(had) && isRecord(value)) before[key] = accumulate(had, value);
    else if (Array.isArray(had) && Array.isArray(value)) before[key] = accumulateList(had, value);
  }
  return before;
}

function accumulateList(had: unknown[], value: unknown[]): unknown[] {
  if (had.every((item) => typeof item === 'string' || typeof item === 'number')) return [...had, ...value];
  for (const entry of value) {
    if (!isRecord(entry)) throw new TypeError(`Unexpected list delta entry is not a dictionary: ${JSON.stringify(entry)}`);
    if (typeof entry.index !== 'number') throw new Error(`Expected list delta entry to have an \`index\` key: ${JSON.stringify(entry)}`);
    const there = had[entry.index];
    if (isRecord(there)) had[entry.index] = accumulate(there, entry);
    else had.splice(entry.index, 0, entry);
  }
  return had;
}

interface ToolCall {
  index: number;
  id: string;
  type: string;
  function: { name: string; arguments: string };
}
export interface Accumulated {
  role: unknown;
  content: unknown;
  reasoning: unknown;
  calls: { id: string; name: string; arguments: string }[];
  finish: unknown;
  usage: unknown;
}

/** The first choice of a stream as both SDKs make it; throws what they would throw, and what would come out wrong. */
export function accumulateStream(chunks: readonly unknown[]): Accumulated {
  const message: Record<string, unknown> = {};
  let finish: unknown;
  let usage: unknown;
  for (const chunk of chunks) {
    if (!isRecord(chunk)) throw new TypeError('a chunk that is no object');
    // Python takes the last chunk's usage as it is, null too.
    if (usage !== undefined && chunk.usage === undefined) throw new Error('usage is overwritten by a later chunk without any');
    usage = chunk.usage ?? undefined;
    const choices = Array.isArray(chunk.choices) ? chunk.choices : [];
    for (const choice of choices) {
      if (finish !== undefined) throw new Error('a choice after its finish reason');
      accumulate(message, choice.delta);
      if (choice.finish_reason) finish = choice.finish_reason;
    }
  }
  const calls = (message.tool_calls ?? []) as ToolCall[];
  for (const [at, call] of calls.entries()) {
    if (call.index !== at) throw new Error(`the call at ${at} has the index ${call.index}`);
    // Node's helper wants all of them.
    if (!call.id || call.type !== 'function' || !call.function.name) throw new Error(`a call without id, type or name: ${JSON.stringify(call)}`);
    JSON.parse(call.function.arguments);
  }
  return {
    role: message.role,
    content: message.content,
    reasoning: message.reasoning_content,
    calls: calls.map((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments })),
    finish,
    usage,
  };
}
