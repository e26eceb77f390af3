import type Anthropic from '@anthropic-ai/sdk';

/**
 * Says what the Messages API would refuse about a request, or undefined: the rules of reference and SDK, and the stricter
 * hosts' (turns alternate, the first is the user's). The members that it knows are bound to the SDK's types: a name that these do not have does not
 * compile.
 */
type Json = Record<string, unknown>;
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ID = /^[a-zA-Z0-9_-]+$/;
const membersOf = <Type>(...names: (keyof Type & string)[]): readonly string[] => names;
/** Sampling belongs to the older version: the SDK's types of today do without. */
type Params = Anthropic.Beta.Messages.MessageCreateParams & { temperature?: number; top_p?: number; top_k?: number };
const TOP = new Set([
  ...membersOf<Params>('model', 'max_tokens', 'messages', 'system', 'stop_sequences', 'stream', 'temperature', 'top_p', 'top_k', 'tools', 'tool_choice'),
  ...membersOf<Params>('thinking', 'output_config', 'metadata', 'service_tier', 'speed', 'cache_control', 'container', 'inference_geo'),
  ...membersOf<Params>('context_management', 'mcp_servers'),
]);
const FIELDS: Record<string, readonly string[]> = {
  text: membersOf<Anthropic.TextBlockParam>('text', 'cache_control', 'citations'),
  image: membersOf<Anthropic.ImageBlockParam>('source', 'cache_control'),
  document: membersOf<Anthropic.DocumentBlockParam>('source', 'title', 'context', 'citations', 'cache_control'),
  tool_use: membersOf<Anthropic.ToolUseBlockParam>('id', 'name', 'input', 'cache_control', 'caller'),
  tool_result: membersOf<Anthropic.ToolResultBlockParam>('tool_use_id', 'content', 'is_error', 'cache_control'),
  thinking: membersOf<Anthropic.ThinkingBlockParam>('thinking', 'signature'),
  redacted_thinking: membersOf<Anthropic.RedactedThinkingBlockParam>('data'),
};
const TOOL = membersOf<Anthropic.Tool>('name', 'description', 'input_schema', 'type', 'cache_control', 'strict', 'input_examples');
const CHOICE: Record<string, readonly string[]> = {
  auto: membersOf<Anthropic.ToolChoiceAuto>('disable_parallel_tool_use'),
  any: membersOf<Anthropic.ToolChoiceAny>('disable_parallel_tool_use'),
  tool: membersOf<Anthropic.ToolChoiceTool>('name', 'disable_parallel_tool_use'),
  none: [],
};
const isPlain = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

export function complaint(text: string, apiVersion = '2023-06-01'): string | undefined {
  // JSON.stringify escapes only those; a literal backslash before is doubled.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/i.test(text)) return 'The request body is not valid JSON: lone surrogate';
  const body: unknown = JSON.parse(text);
  if (!isPlain(body)) return 'not an object';
  for (const key of Object.keys(body)) if (!TOP.has(key)) return `${key}: Extra inputs are not permitted`;
  if (typeof body.model !== 'string' || body.model === '') return 'model: Field required';
  if (!Number.isInteger(body.max_tokens) || Number(body.max_tokens) < 1) return 'max_tokens: Field required';
  return sampling(body, apiVersion) ?? fields(body) ?? tooling(body) ?? messages(body);
}

function sampling(body: Json, apiVersion: string): string | undefined {
  if (apiVersion !== '2023-06-01') for (const key of ['temperature', 'top_p', 'top_k']) if (key in body) return `${key}: Extra inputs are not permitted`;
  for (const key of ['temperature', 'top_p']) if (key in body && !(Number(body[key]) >= 0 && Number(body[key]) <= 1)) return `${key}: range: 0..1`;
  const thinking = body.thinking;
  if (thinking === undefined) return undefined;
  if (!isPlain(thinking) || !['enabled', 'adaptive', 'disabled', 'between_tools'].includes(String(thinking.type))) return 'thinking.type: invalid';
  if (thinking.type === 'enabled' && !(Number(thinking.budget_tokens) >= 1024 && Number(thinking.budget_tokens) < Number(body.max_tokens)))
    return 'thinking.budget_tokens: must be at least 1024 and less than max_tokens';
  if (thinking.type !== 'disabled' && 'temperature' in body && body.temperature !== 1) return 'temperature may only be set to 1 when thinking is enabled';
  return undefined;
}

function fields(body: Json): string | undefined {
  if ('stream' in body && typeof body.stream !== 'boolean') return 'stream: Input should be a valid boolean';
  if ('metadata' in body && !(isPlain(body.metadata) && Object.keys(body.metadata).every((key) => key === 'user_id')))
    return 'metadata: Extra inputs are not permitted';
  if ('service_tier' in body && !['auto', 'standard_only'].includes(String(body.service_tier))) return 'service_tier: invalid';
  const stops = body.stop_sequences;
  if (stops !== undefined && !(Array.isArray(stops) && stops.length > 0 && stops.every((stop) => typeof stop === 'string' && stop.trim() !== '')))
    return 'stop_sequences: each stop sequence must contain non-whitespace';
  if (Array.isArray(body.system)) return body.system.map((block) => text(block, 'system')).find(Boolean);
  if ('system' in body && (typeof body.system !== 'string' || body.system.trim() === '')) return 'system: Input should be a valid string';
  return undefined;
}

function text(block: unknown, where: string): string | undefined {
  if (!isPlain(block) || block.type !== 'text' || typeof block.text !== 'string') return `${where}: text block expected`;
  return block.text.trim() === '' ? `${where}: text content blocks must contain non-whitespace text` : undefined;
}

/** Tools of Anthropic's own, and what each must say. */
const NATIVE: Record<string, string[]> = { bash_20250124: ['name'], web_search_20250305: ['name'], mcp_toolset: ['mcp_server_name'] };

function tooling(body: Json): string | undefined {
  const names = new Set<string>();
  if ('tools' in body && (!Array.isArray(body.tools) || body.tools.length === 0)) return 'tools: Input should be a valid list';
  for (const [index, tool] of (Array.isArray(body.tools) ? body.tools : []).entries()) {
    const own = isPlain(tool) ? NATIVE[String(tool.type)] : undefined;
    if (isPlain(tool) && own) {
      for (const key of own) if (typeof tool[key] !== 'string') return `tools.${index}.${key}: Field required`;
      names.add(String(tool.name ?? tool.type));
      continue;
    }
    if (!isPlain(tool) || !NAME.test(String(tool.name))) return `tools.${index}.name: pattern`;
    for (const key of Object.keys(tool)) if (!TOOL.includes(key)) return `tools.${index}.${key}: Extra inputs are not permitted`;
    if (!isPlain(tool.input_schema) || tool.input_schema.type !== 'object') return `tools.${index}.input_schema.type: Field required`;
    if (names.has(String(tool.name))) return 'tools: Tool names must be unique.';
    names.add(String(tool.name));
  }
  if (!('tool_choice' in body)) return undefined;
  const choice = body.tool_choice;
  if (names.size === 0) return 'tool_choice: may only be specified while providing tools';
  if (!isPlain(choice)) return 'tool_choice: invalid';
  const allowed = CHOICE[String(choice.type)];
  if (!allowed) return 'tool_choice: invalid';
  for (const key of Object.keys(choice))
    if (key !== 'type' && !allowed.includes(key)) return `tool_choice.${choice.type}.${key}: Extra inputs are not permitted`;
  if (choice.type === 'tool' && !names.has(String(choice.name))) return `tool_choice: tool '${choice.name}' not found`;
  const thinking = isPlain(body.thinking) ? body.thinking.type : undefined;
  if ((choice.type === 'any' || choice.type === 'tool') && (thinking === 'enabled' || thinking === 'adaptive'))
    return 'Thinking may not be enabled when tool_choice forces tool use.';
  return undefined;
}

interface State {
  ids: Set<string>;
  open: Set<string>;
}

function messages(body: Json): string | undefined {
  const list = body.messages;
  if (!Array.isArray(list) || list.length === 0) return 'messages: at least one message is required';
  const state: State = { ids: new Set(), open: new Set() };
  for (const [index, message] of list.entries()) {
    const at = `messages.${index}`;
    if (!isPlain(message)) return `${at}: Input should be an object`;
    for (const key of Object.keys(message)) if (key !== 'role' && key !== 'content') return `${at}.${key}: Extra inputs are not permitted`;
    if (message.role !== (index % 2 === 0 ? 'user' : 'assistant')) return `${at}: roles must alternate, the user's first`;
    const content = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;
    if (!Array.isArray(content) || content.length === 0) return `${at}: all messages must have non-empty content`;
    const wrong = turn(content, message.role === 'user', at, state);
    if (wrong) return wrong;
    const last = content.at(-1);
    if (index === list.length - 1 && message.role === 'assistant' && isPlain(last) && last.type === 'text' && /\s$/.test(String(last.text)))
      return 'messages: final assistant content cannot end with trailing whitespace';
    if (message.role === 'assistant' && thinkingMissing(body, content, index, list)) return `${at}: Expected thinking`;
  }
  return state.open.size > 0 ? `tool_use without tool_result: ${[...state.open].join()}` : undefined;
}

function thinkingMissing(body: Json, content: unknown[], index: number, list: unknown[]): boolean {
  if (!isPlain(body.thinking) || (body.thinking.type !== 'enabled' && body.thinking.type !== 'adaptive')) return false;
  const final = index >= list.length - 2;
  return final && content.some((block) => isPlain(block) && block.type === 'tool_use') && !/thinking$/.test(String(isPlain(content[0]) && content[0].type));
}

function turn(content: unknown[], user: boolean, at: string, state: State): string | undefined {
  const next = new Set<string>();
  let other = false;
  for (const [index, block] of content.entries()) {
    const where = `${at}.content.${index}`;
    const known = isPlain(block) ? FIELDS[String(block.type)] : undefined;
    if (!isPlain(block) || !known) return `${where}.type: unexpected`;
    for (const key of Object.keys(block)) if (key !== 'type' && !known.includes(key)) return `${where}.${key}: Extra inputs are not permitted`;
    if (block.type === 'tool_result') {
      if (!user) return `${where}: tool_result in an assistant turn`;
      if (other) return `${where}: tool_result blocks must come first`;
      if (!state.open.delete(String(block.tool_use_id))) return `${where}: unexpected tool_use_id ${block.tool_use_id}`;
      const wrong = result(block.content, where);
      if (wrong) return wrong;
      continue;
    }
    other = true;
    const wrong = block.type === 'tool_use' ? toolUse(block, user, where, state, next) : plainBlock(block, user, where);
    if (wrong) return wrong;
  }
  if (state.open.size > 0) return `${at}: tool_use without tool_result immediately after: ${[...state.open].join()}`;
  state.open = next;
  return undefined;
}

function toolUse(block: Json, user: boolean, where: string, state: State, next: Set<string>): string | undefined {
  if (user) return `${where}: tool_use in a user turn`;
  if (!ID.test(String(block.id))) return `${where}.id: pattern: ${block.id}`;
  if (!NAME.test(String(block.name))) return `${where}.name: pattern: ${block.name}`;
  if (!isPlain(block.input)) return `${where}.input: Input should be a valid dictionary`;
  if (state.ids.has(String(block.id))) return `${where}: tool_use ids must be unique`;
  state.ids.add(String(block.id));
  next.add(String(block.id));
  return undefined;
}

function plainBlock(block: Json, user: boolean, where: string): string | undefined {
  if (block.type === 'text') return text(block, where);
  if (/thinking$/.test(String(block.type))) return user ? `${where}: thinking in a user turn` : undefined;
  if (!user) return `${where}: ${block.type} in an assistant turn`;
  return block.type === 'image' ? image(block.source, where) : undefined;
}

function image(source: unknown, where: string): string | undefined {
  if (!isPlain(source)) return `${where}.source: invalid`;
  if (source.type === 'url') return /^https?:\/\//.test(String(source.url)) ? undefined : `${where}.source.url: Only HTTP(S) URLs are supported`;
  if (source.type !== 'base64' || !/^image\/(jpeg|png|gif|webp)$/.test(String(source.media_type))) return `${where}.source.media_type: invalid`;
  const data = String(source.data);
  return data === '' || data.length % 4 !== 0 || /[^A-Za-z0-9+/=]/.test(data) ? `${where}.source: invalid base64 data` : undefined;
}

function result(content: unknown, where: string): string | undefined {
  if (content === undefined) return undefined;
  if (typeof content === 'string') return content === '' ? `${where}.content: empty` : undefined;
  if (!Array.isArray(content)) return `${where}.content: Input should be a string or blocks`;
  return content.map((part) => (isPlain(part) && part.type === 'text' ? text(part, where) : undefined)).find(Boolean);
}
