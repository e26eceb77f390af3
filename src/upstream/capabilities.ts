import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { ChatRequest } from '../wire/chat.ts';

export type Ability = keyof UpstreamTarget['supports'];

/** What this request needs and this target cannot do; undefined: it can be served there. Messages are looked through only when a target is blind. */
export function missingAbility(target: UpstreamTarget, request: ChatRequest): Ability | undefined {
  const { vision, tools, json_schema } = target.supports;
  if (!tools && needsTools(request)) return 'tools';
  if (!json_schema && needsJsonSchema(request)) return 'json_schema';
  if (!vision && needsVision(request)) return 'vision';
  return undefined;
}

function needsTools(request: ChatRequest): boolean {
  return (request.tools?.length ?? 0) > 0 || (Array.isArray(request.functions) && request.functions.length > 0);
}

function needsJsonSchema(request: ChatRequest): boolean {
  const format = request.response_format;
  return typeof format === 'object' && format !== null && 'type' in format && format.type === 'json_schema';
}

function needsVision(request: ChatRequest): boolean {
  return request.messages.some(
    ({ content }) => Array.isArray(content) && content.some((part) => part.type === 'image_url' || part.type === 'input_image' || part.type === 'image'),
  );
}
