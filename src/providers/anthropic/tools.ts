import { HermesError } from '../../contracts/errors.ts';
import type { ChatRequest, FunctionTool } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import type { NameMap } from '../../wire/tool-names.ts';
import type { ToolChoice, WireTool } from './blocks.ts';

export interface Tooling {
  tools: WireTool[];
  choice: ToolChoice | undefined;
  dropped: string[];
}

/** Every function name that the request speaks of, for the name map. */
export function functionNames(request: ChatRequest): string[] {
  const { functions } = request;
  return [
    ...(request.tools ?? []).flatMap((tool) => (tool.function ? [tool.function.name] : [])),
    ...(Array.isArray(functions) ? functions : []).flatMap((one) => (isRecord(one) && typeof one.name === 'string' ? [one.name] : [])),
    ...request.messages.flatMap(calledNames),
  ];
}

function calledNames({ tool_calls, function_call }: ChatRequest['messages'][number]): string[] {
  const legacy = isRecord(function_call) && typeof function_call.name === 'string' ? [function_call.name] : [];
  return [...(tool_calls ?? []).flatMap((call) => (call.function ? [call.function.name] : [])), ...legacy];
}

export function toTooling(request: ChatRequest, names: NameMap, strict: boolean): Tooling {
  const dropped: string[] = [];
  const tools = new Map<string, WireTool>();
  for (const tool of functionTools(request)) {
    if (tool.type !== 'function' || !tool.function) {
      dropped.push(`tools.${tool.type}`);
      continue;
    }
    const name = names.toWire(tool.function.name);
    if (tool.function.strict && !strict) dropped.push('tools.strict');
    // Two tools of one name are refused: the first stands.
    if (!tools.has(name)) tools.set(name, toTool(tool, name, strict));
  }
  const native = isRecord(request.anthropic) && Array.isArray(request.anthropic.tools) ? request.anthropic.tools : [];
  for (const [index, tool] of native.entries()) {
    if (!isRecord(tool)) continue;
    // A toolset has no name.
    const name = typeof tool.name === 'string' ? tool.name : `\u0000${index}`;
    if (!tools.has(name)) tools.set(name, tool);
  }
  const { choice, only } = toChoice(request, names, tools, dropped);
  const offered = [...tools].filter(([name]) => !only || only.has(name)).map(([, tool]) => tool);
  return offered.length > 0 ? { tools: offered, choice, dropped } : { dropped, ...undeclared(request, names) };
}

/** A history with tool calls needs its tools declared even when none is on offer any more (the last round). */
function undeclared(request: ChatRequest, names: NameMap): { tools: WireTool[]; choice: ToolChoice | undefined } {
  const called = [...new Set(request.messages.flatMap(calledNames))];
  const tools = called.map((name): WireTool => ({ name: names.toWire(name), input_schema: { type: 'object', properties: {} } }));
  return { tools, choice: tools.length > 0 ? { type: 'none' } : undefined };
}

function functionTools(request: ChatRequest): FunctionTool[] {
  const { functions } = request;
  if (request.tools?.length || !Array.isArray(functions)) return request.tools ?? [];
  return functions.flatMap((one): FunctionTool[] =>
    isRecord(one) && typeof one.name === 'string' ? [{ type: 'function', function: { ...one, name: one.name } }] : [],
  );
}

function toTool(tool: FunctionTool, name: string, strict: boolean): WireTool {
  const { description, parameters, strict: asked } = tool.function;
  const out: WireTool = { name };
  if (typeof description === 'string' && description.trim() !== '') out.description = description;
  out.input_schema = toSchema(parameters);
  if (asked === true && strict) out.strict = true;
  if (isRecord(tool.cache_control)) out.cache_control = tool.cache_control;
  if (isRecord(tool.anthropic)) Object.assign(out, tool.anthropic);
  return out;
}

/** `type: object` is required at the top; everything else of the schema stays as it is. */
function toSchema(parameters: unknown): Record<string, unknown> {
  if (!isRecord(parameters)) return { type: 'object', properties: {} };
  return parameters.type === 'object' ? parameters : { ...parameters, type: 'object' };
}

interface Choice {
  choice: ToolChoice | undefined;
  /** `allowed_tools`: the names that stay on offer. */
  only: ReadonlySet<string> | undefined;
}

function toChoice(request: ChatRequest, names: NameMap, tools: ReadonlyMap<string, WireTool>, dropped: string[]): Choice {
  const { choice, only } = askedChoice(request, names, dropped);
  if (tools.size === 0) return { choice: undefined, only };
  if (choice?.type === 'tool' && !tools.has(choice.name ?? ''))
    throw new HermesError('invalid_value', "'tool_choice' names a function that is not among 'tools'.", { param: 'tool_choice' });
  // The legacy form knows one call an answer.
  const alone = request.parallel_tool_calls === false || (request.functions !== undefined && !request.tools?.length);
  if (!alone || choice?.type === 'none') return { choice, only };
  return { choice: { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }, only };
}

function askedChoice(request: ChatRequest, names: NameMap, dropped: string[]): Choice {
  const asked: unknown = request.tool_choice ?? request.function_call;
  const plain = modeOf(asked);
  if (plain) return { choice: plain, only: undefined };
  if (!isRecord(asked)) return { choice: undefined, only: undefined };
  const named = isRecord(asked.function) ? asked.function.name : asked.type === undefined ? asked.name : undefined;
  if (typeof named === 'string') return { choice: { type: 'tool', name: names.toWire(named) }, only: undefined };
  const allowed = asked.type === 'allowed_tools' ? asked.allowed_tools : undefined;
  if (isRecord(allowed) && Array.isArray(allowed.tools)) {
    const only = allowed.tools.flatMap((tool) => (isRecord(tool) && isRecord(tool.function) ? [names.toWire(String(tool.function.name))] : []));
    return { choice: modeOf(allowed.mode), only: new Set(only) };
  }
  dropped.push('tool_choice');
  return { choice: undefined, only: undefined };
}

function modeOf(asked: unknown): ToolChoice | undefined {
  if (asked === 'required') return { type: 'any' };
  return asked === 'auto' || asked === 'none' ? { type: asked } : undefined;
}
