import type { ChatRequest, FunctionTool } from '../../wire/chat.ts';
import { isCount } from '../../wire/count.ts';
import { isRecord } from '../../wire/json.ts';
import { toCustomTool } from './custom-tools.ts';
import { refuse } from './refuse.ts';
import { toMessages } from './to-messages.ts';

/** Fields that mean the same here and there. Not `metadata`: chat completions take it with `store` alone, and what is stored here is hermes'. */
const SAME = [
  'temperature',
  'top_p',
  'top_logprobs',
  'parallel_tool_calls',
  'user',
  'safety_identifier',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'moderation',
];
/** What only the vendor's own service can do: done silently without, the answer would be another one. */
const REFUSED = ['background', 'prompt', 'context_management'];

/** A Responses request as a canonical one. `fields`: the body without hermes' own. */
export function toChatRequest(fields: Readonly<Record<string, unknown>>): ChatRequest {
  const { model, stream, max_output_tokens } = fields;
  for (const name of REFUSED)
    if (fields[name]) throw refuse(name, `'${name}' is not supported here; leave it out, or pass this API through (passthrough.responses).`);
  if (model !== undefined && model !== null && typeof model !== 'string') throw refuse('model', "'model' must be a string.");
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') throw refuse('stream', "'stream' must be true or false.");
  if (max_output_tokens !== undefined && max_output_tokens !== null && !isCount(max_output_tokens))
    throw refuse('max_output_tokens', "'max_output_tokens' must be a whole number of at least 1.");
  const tools = toTools(fields.tools);
  return {
    ...(typeof model === 'string' ? { model } : {}),
    messages: toMessages(fields.instructions, fields.input),
    ...(stream === true ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...(typeof max_output_tokens === 'number' ? { max_completion_tokens: max_output_tokens } : {}),
    ...Object.fromEntries(SAME.filter((name) => fields[name] !== undefined && fields[name] !== null).map((name) => [name, fields[name]])),
    ...(typeof fields.top_logprobs === 'number' || includesLogprobs(fields.include) ? { logprobs: true } : {}),
    ...(tools.length > 0 ? { tools, ...toChoice(fields.tool_choice) } : {}),
    ...toText(fields.text),
    ...(isRecord(fields.reasoning) && typeof fields.reasoning.effort === 'string' ? { reasoning_effort: fields.reasoning.effort } : {}),
  };
}

function includesLogprobs(include: unknown): boolean {
  return Array.isArray(include) && include.includes('message.output_text.logprobs');
}

function toTools(tools: unknown): FunctionTool[] {
  if (tools === undefined || tools === null) return [];
  if (!Array.isArray(tools)) throw refuse('tools', "'tools' must be a list.");
  return tools.map((tool, index) => {
    if (!isRecord(tool)) throw refuse(`tools[${index}]`, `'tools[${index}]' must be an object.`);
    if (tool.type === 'custom') return toCustomTool(tool, `tools[${index}]`);
    if (tool.type !== 'function' || typeof tool.name !== 'string')
      throw refuse(
        `tools[${index}]`,
        `'tools[${index}]' is not a function with a name; tools that the vendor runs need the API passed through (passthrough.responses).`,
      );
    const { name, description, parameters, strict } = tool;
    return {
      type: 'function',
      function: {
        name,
        ...(typeof description === 'string' ? { description } : {}),
        ...(isRecord(parameters) ? { parameters } : {}),
        ...(typeof strict === 'boolean' ? { strict } : {}),
      },
    };
  });
}

function toChoice(choice: unknown): Partial<ChatRequest> {
  if (choice === undefined || choice === null) return {};
  if (typeof choice === 'string') return { tool_choice: choice };
  if (!isRecord(choice)) throw refuse('tool_choice', "'tool_choice' must be a mode or an object.");
  // Custom tools travel as functions.
  if (choice.type === 'function' || choice.type === 'custom') return { tool_choice: { type: 'function', function: { name: choice.name } } };
  if (choice.type === 'allowed_tools' && Array.isArray(choice.tools)) {
    const tools = choice.tools.map((tool) => ({ type: 'function', function: { name: isRecord(tool) ? tool.name : undefined } }));
    return { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } } };
  }
  throw refuse('tool_choice', `A tool_choice of the type ${JSON.stringify(choice.type)} is not supported here.`);
}

function toText(text: unknown): Partial<ChatRequest> {
  if (!isRecord(text)) return {};
  const verbosity = typeof text.verbosity === 'string' ? { verbosity: text.verbosity } : {};
  const { format } = text;
  if (!isRecord(format) || format.type === 'text') return verbosity;
  if (format.type !== 'json_schema') return { ...verbosity, response_format: { type: format.type } };
  const { type: _type, ...schema } = format;
  return { ...verbosity, response_format: { type: 'json_schema', json_schema: schema } };
}
