import { createHash } from 'node:crypto';
import { HermesError } from '../../contracts/errors.ts';
import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatMessage, ChatRequest } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { mayGoTo, toMaker } from '../../wire/maker.ts';
import { createNameMap, type NameMap } from '../../wire/tool-names.ts';
import type { Block } from './blocks.ts';
import { droppedParameters, NATIVE_PARAMETERS } from './dropped.ts';
import { defaultMaxTokens, type Generation, generationOf, structuresOutput, takesPrefill } from './generation.ts';
import { toSampling } from './sampling.ts';
import { type Thinking, toThinking } from './thinking.ts';
import { functionNames, toTooling } from './tools.ts';
import { lostThinking, mendEnd, toConversation } from './turns.ts';

export interface AnthropicRequest {
  body: Record<string, unknown>;
  dropped: string[];
  names: NameMap;
}
/** Since this version sampling parameters are refused and the key goes as a bearer token. Source: @anthropic-ai/sdk 1.0. */
export const BEARER_VERSION = '2026-10-21';

export function toAnthropicRequest(request: ChatRequest, target: UpstreamTarget, apiVersion: string): AnthropicRequest {
  if (typeof request.n === 'number' && request.n > 1)
    throw new HermesError('unsupported_parameter', "This model gives one answer a request: leave 'n' out, or ask several times.", { param: 'n' });
  const native = nativeOf(request);
  const generation = generationOf(typeof target.quirks.generation === 'string' ? target.quirks.generation : target.modelName);
  const names = createNameMap(functionNames(request));
  const tooling = toTooling(request, names, structuresOutput(generation));
  const forced = tooling.choice?.type === 'any' || tooling.choice?.type === 'tool';
  const maker = toMaker(target);
  const sendsThinking = (message: ChatMessage): boolean => target.reasoning === 'send' || (target.reasoning !== 'strip' && mayGoTo(message, maker));
  const { system, turns, dropped } = toConversation(request.messages, { names, sendsThinking });
  const thinking = thinkingFor(request, native, target, generation, !forced && !lostThinking(turns));
  mendEnd(turns, takesPrefill(generation) && !thinking.active);
  const sampling = toSampling(request, native.top_k, { generation, accepted: apiVersion < BEARER_VERSION, thinking: thinking.active });
  const output = outputConfig(request, native, thinking, target, generation);
  const stops = stopSequences(request.stop);
  const body: Record<string, unknown> = {
    model: target.modelName,
    max_tokens: thinking.maxTokens,
    ...(system.length > 0 ? { system: joined(system) } : {}),
    ...(tooling.tools.length > 0 ? { tools: tooling.tools } : {}),
    ...(tooling.choice ? { tool_choice: tooling.choice } : {}),
    messages: turns,
    ...sampling.fields,
    ...(stops.list.length > 0 ? { stop_sequences: stops.list } : {}),
    ...(thinking.thinking ? { thinking: thinking.thinking } : {}),
    ...output.fields,
    ...metadata(request, native),
    ...serviceTier(request, native).fields,
    ...Object.fromEntries(NATIVE_PARAMETERS.filter((name) => native[name] !== undefined && native[name] !== null).map((name) => [name, native[name]])),
    ...(request.stream === true ? { stream: true } : {}),
    ...(isRecord(native.fields) ? native.fields : {}),
    ...target.extraBody,
  };
  const all = [
    ...droppedParameters(request),
    ...tooling.dropped,
    ...dropped,
    ...thinking.dropped,
    ...sampling.dropped,
    ...output.dropped,
    ...stops.dropped,
    ...serviceTier(request, native).dropped,
  ];
  return { body, dropped: [...new Set(all)], names };
}

/** Anthropic's own parameters: from its clients (`anthropic`), or straight from the body. */
function nativeOf(request: ChatRequest): Record<string, unknown> {
  const { thinking, top_k, output_config } = request;
  const straight = Object.fromEntries(NATIVE_PARAMETERS.map((name) => [name, request[name]]));
  return { thinking, top_k, output_config, ...straight, ...(isRecord(request.anthropic) ? request.anthropic : {}) };
}

function thinkingFor(request: ChatRequest, native: Record<string, unknown>, target: UpstreamTarget, generation: Generation, possible: boolean): Thinking {
  const asked = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const ceiling = target.maxTokens;
  const bounded = asked === undefined ? ceiling : Math.min(asked, ceiling ?? asked);
  const explicit = isRecord(native.output_config) ? native.output_config.effort : undefined;
  return toThinking(
    // A native effort stands on its own: it is not a wish for thinking.
    { effort: native.thinking === undefined && explicit !== undefined ? undefined : request.reasoning_effort, native: native.thinking },
    { generation, maxTokens: bounded, defaultMaxTokens: defaultMaxTokens(generation), ceiling, possible },
  );
}

/** One string, unless a block carries more than its text (a cache mark). */
function joined(system: readonly Block[]): string | readonly Block[] {
  return system.every((block) => Object.keys(block).length === 2) ? system.map((block) => block.text).join('\n\n') : system;
}

interface Part {
  fields: Record<string, unknown>;
  dropped: string[];
}

function outputConfig(request: ChatRequest, native: Record<string, unknown>, thinking: Thinking, target: UpstreamTarget, generation: Generation): Part {
  const config: Record<string, unknown> = isRecord(native.output_config) ? { ...native.output_config } : {};
  const dropped: string[] = [];
  if (thinking.effort) config.effort = thinking.effort;
  // A client's older `output_format` goes as it came: both names are a 400.
  const format = isRecord(native.fields) && 'output_format' in native.fields ? undefined : request.response_format;
  if (isRecord(format) && format.type === 'json_schema') {
    const schema = isRecord(format.json_schema) ? format.json_schema.schema : undefined;
    if (structuresOutput(generation) && target.supports.json_schema && isRecord(schema)) config.format = { type: 'json_schema', schema };
    else dropped.push('response_format');
  } else if (isRecord(format) && format.type !== 'text') dropped.push('response_format');
  return { fields: Object.keys(config).length > 0 ? { output_config: config } : {}, dropped };
}

function stopSequences(stop: unknown): { list: string[]; dropped: string[] } {
  const asked = (Array.isArray(stop) ? stop : [stop]).filter((one) => one !== null && one !== undefined);
  const list = asked.filter((one): one is string => typeof one === 'string' && one.trim() !== '');
  return { list, dropped: list.length < asked.length ? ['stop'] : [] };
}

/** Longest `metadata.user_id` that is taken. */
const MAX_USER_ID = 256;

function metadata(request: ChatRequest, native: Record<string, unknown>): Record<string, unknown> {
  if (isRecord(native.metadata)) return { metadata: native.metadata };
  const user = [request.safety_identifier, request.user].find((one) => typeof one === 'string' && one !== '');
  if (typeof user !== 'string') return {};
  return { metadata: { user_id: user.length > MAX_USER_ID ? createHash('sha256').update(user).digest('hex') : user } };
}

function serviceTier(request: ChatRequest, native: Record<string, unknown>): Part {
  if (native.service_tier !== undefined) return { fields: { service_tier: native.service_tier }, dropped: [] };
  const tier = request.service_tier;
  if (tier === null || tier === undefined) return { fields: {}, dropped: [] };
  if (tier === 'auto' || tier === 'priority') return { fields: { service_tier: 'auto' }, dropped: [] };
  return tier === 'default' ? { fields: { service_tier: 'standard_only' }, dropped: [] } : { fields: {}, dropped: ['service_tier'] };
}
