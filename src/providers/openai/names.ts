import type { ChatChunk, ChatCompletion, ChatMessage, ChatRequest, FunctionTool, ToolCall } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { createNameMap, type NameMap } from '../../wire/tool-names.ts';

const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;

/** Names of tools made legal everywhere that they stand: `tools`, `tool_choice`, the history. The same request when all of them are. */
export function nameRequest(request: ChatRequest): { request: ChatRequest; names: NameMap | undefined } {
  if (!speaksOfTools(request)) return { request, names: undefined };
  const all = new Set<string>();
  rename(request, (name) => {
    all.add(name);
    return name;
  });
  if ([...all].every((name) => LEGAL.test(name))) return { request, names: undefined };
  const names = createNameMap(all);
  return { request: rename(request, (name) => names.toWire(name)), names };
}

function speaksOfTools({ tools, functions, messages }: ChatRequest): boolean {
  return (
    Boolean(tools || functions) || messages.some(({ role, tool_calls, function_call }) => tool_calls || function_call || role === 'tool' || role === 'function')
  );
}

/** In place. */
export function nameCompletionBack(completion: ChatCompletion, names: NameMap): void {
  for (const { message } of completion.choices)
    if (message)
      Object.assign(
        message,
        renameMessage(message, (name) => names.fromWire(name)),
      );
}

/** In place. A name comes whole, in a call's first piece. */
export function nameChunkBack(chunk: ChatChunk, names: NameMap): ChatChunk {
  for (const { delta } of chunk.choices ?? []) {
    for (const call of delta?.tool_calls ?? []) if (call.function?.name) call.function.name = names.fromWire(call.function.name);
    if (isRecord(delta?.function_call) && typeof delta.function_call.name === 'string') delta.function_call.name = names.fromWire(delta.function_call.name);
  }
  return chunk;
}

type Change = (name: string) => string;

function rename(request: ChatRequest, change: Change): ChatRequest {
  const { tools, tool_choice, functions, function_call } = request;
  const next: ChatRequest = { ...request, messages: request.messages.map((message) => renameMessage(message, change)) };
  if (Array.isArray(tools)) next.tools = tools.map((tool) => renameTool(tool, change));
  if (isRecord(tool_choice)) next.tool_choice = renameChoice(tool_choice, change);
  if (Array.isArray(functions)) next.functions = functions.map((one: unknown) => renameNamed(one, change));
  if (isRecord(function_call)) next.function_call = renameNamed(function_call, change);
  return next;
}

function renameMessage(message: ChatMessage, change: Change): ChatMessage {
  const { role, name, tool_calls, function_call } = message;
  const next: ChatMessage = { ...message };
  if (tool_calls) next.tool_calls = tool_calls.map((call) => renameTool(call, change));
  if (isRecord(function_call)) next.function_call = renameNamed(function_call, change);
  // A user's name is no tool's.
  if ((role === 'tool' || role === 'function') && name) next.name = change(name);
  return next;
}

function renameTool<T extends FunctionTool | ToolCall>(tool: T, change: Change): T {
  const next: T = { ...tool };
  if (isRecord(tool.function)) next.function = renameNamed(tool.function, change);
  if (isRecord(tool.custom)) Object.assign(next, { custom: renameNamed(tool.custom, change) });
  return next;
}

function renameChoice(choice: Record<string, unknown>, change: Change): Record<string, unknown> {
  const next = { ...choice };
  for (const member of ['function', 'custom'] as const) if (isRecord(choice[member])) next[member] = renameNamed(choice[member], change);
  const allowed = choice.allowed_tools;
  if (isRecord(allowed) && Array.isArray(allowed.tools)) {
    next.allowed_tools = { ...allowed, tools: allowed.tools.map((tool: unknown) => (isRecord(tool) ? renameChoice(tool, change) : tool)) };
  }
  return next;
}

function renameNamed<T>(value: T, change: Change): T {
  return isRecord(value) && typeof value.name === 'string' ? { ...value, name: change(value.name) } : value;
}
