import { HermesError } from '../../contracts/errors.ts';
import type { ChatRequest, FunctionTool } from '../../wire/chat.ts';
import { isCount } from '../../wire/count.ts';
import { isRecord } from '../../wire/json.ts';
import { refuse, toMessages } from './to-messages.ts';

/** Top-level fields with a place in the canonical request; all others go along in `anthropic.fields`. */
const KNOWN = new Set([
  'model',
  'messages',
  'system',
  'max_tokens',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'metadata',
  'service_tier',
  'thread',
]);

/** A Messages request as a canonical one. `fields`: the body without hermes' own. Throws a HermesError that names the field. */
export function toChatRequest(fields: Readonly<Record<string, unknown>>, betas: string | undefined): ChatRequest {
  const { model, max_tokens, stream, temperature, top_p, stop_sequences, metadata } = fields;
  if (model !== undefined && model !== null && typeof model !== 'string') throw refuse('model', "'model' must be a string.");
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') throw refuse('stream', "'stream' must be true or false.");
  if (max_tokens !== undefined && max_tokens !== null && !isCount(max_tokens)) throw refuse('max_tokens', "'max_tokens' must be a whole number of at least 1.");
  if (isRecord(fields.thread)) throw unthreaded();
  const { tools, native } = toTools(fields.tools);
  const user = isRecord(metadata) && typeof metadata.user_id === 'string' ? metadata.user_id : undefined;
  const carried = toCarried(fields, native, betas);
  return {
    ...(typeof model === 'string' ? { model } : {}),
    messages: toMessages(fields.system, fields.messages),
    ...(typeof max_tokens === 'number' ? { max_tokens } : {}),
    ...(stream === true ? { stream: true } : {}),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof top_p === 'number' ? { top_p } : {}),
    ...(Array.isArray(stop_sequences) && stop_sequences.length > 0 ? { stop: stop_sequences } : {}),
    ...(tools.length > 0 ? { tools } : {}),
    ...toChoice(fields.tool_choice),
    ...toFormat(fields),
    ...(user ? { user } : {}),
    ...(Object.keys(carried).length > 0 ? { anthropic: carried } : {}),
  };
}

/** A conversation that the vendor holds would be out of sight for routing, failover and trimming. The SDKs' tool runners know this code, and go on by sending all of it. */
function unthreaded(): HermesError {
  return new HermesError(
    'unsupported_parameter',
    "Message threads are not kept here: send the whole conversation, or give a 'session_id' and send what is new (tool runners: thread: false).",
    { param: 'thread', said: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } },
  );
}

/** Function tools, and apart from them those that Anthropic runs itself. */
function toTools(tools: unknown): { tools: FunctionTool[]; native: unknown[] } {
  if (tools === undefined || tools === null) return { tools: [], native: [] };
  if (!Array.isArray(tools)) throw refuse('tools', "'tools' must be a list.");
  const own: FunctionTool[] = [];
  const native: unknown[] = [];
  for (const [index, tool] of tools.entries()) {
    // Toolsets have no name of their own.
    if (isRecord(tool) && typeof tool.type === 'string' && tool.type !== 'custom') {
      native.push(tool);
      continue;
    }
    if (!isRecord(tool) || typeof tool.name !== 'string') throw refuse(`tools.${index}`, `'tools.${index}' must be an object with a name.`);
    const { name, description, input_schema, strict, ...more } = tool;
    own.push({
      type: 'function',
      function: {
        name: tool.name,
        ...(typeof description === 'string' ? { description } : {}),
        ...(isRecord(input_schema) ? { parameters: input_schema } : {}),
        ...(typeof strict === 'boolean' ? { strict } : {}),
      },
      ...(Object.keys(more).length > 0 ? { anthropic: more } : {}),
    });
  }
  return { tools: own, native };
}

function toChoice(choice: unknown): Partial<ChatRequest> {
  if (!isRecord(choice)) return {};
  const alone = choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {};
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { tool_choice: choice.type, ...alone };
    case 'any':
      return { tool_choice: 'required', ...alone };
    case 'tool':
      return { tool_choice: { type: 'function', function: { name: choice.name } }, ...alone };
    default:
      throw refuse('tool_choice', "'tool_choice.type' must be auto, any, tool or none.");
  }
}

/** `output_format` is the older name, of the beta structured-outputs-2025-11-13; it goes along in `anthropic.fields`, too. */
function toFormat({ output_config, output_format }: Readonly<Record<string, unknown>>): Partial<ChatRequest> {
  const format = (isRecord(output_config) ? output_config.format : undefined) ?? output_format;
  if (!isRecord(format) || format.type !== 'json_schema') return {};
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: format.schema, strict: true } } };
}

/** What Anthropic alone understands. */
function toCarried(fields: Readonly<Record<string, unknown>>, tools: unknown[], betas: string | undefined): Record<string, unknown> {
  const carried: Record<string, unknown> = {};
  for (const name of ['thinking', 'top_k', 'metadata', 'service_tier'] as const)
    if (fields[name] !== undefined && fields[name] !== null) carried[name] = fields[name];
  if (isRecord(fields.output_config)) {
    const { format: _format, ...config } = fields.output_config;
    if (Object.keys(config).length > 0) carried.output_config = config;
  }
  const unknown = Object.entries(fields).filter(([name]) => !KNOWN.has(name));
  if (unknown.length > 0) carried.fields = Object.fromEntries(unknown);
  if (tools.length > 0) carried.tools = tools;
  if (betas) carried.betas = betas;
  return carried;
}
