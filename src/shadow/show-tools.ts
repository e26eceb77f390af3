import type { Config } from '../contracts/config.ts';
import type { Ask, RouteDecision } from '../contracts/exchange.ts';
import type { ChatRequest } from '../wire/chat.ts';

/** The candidate may look at its tools but not use them: the permission is empty, so that whatever its model calls, nothing is run. */
export function withoutTools(candidate: RouteDecision): RouteDecision {
  return { ...candidate, tools: [] };
}

/** Shows the candidate's model the tools it would be offered, as functions that somebody else runs: it answers as it would. */
export function showTools(request: ChatRequest, candidate: RouteDecision, ask: Ask, config: Config): ChatRequest {
  const own = new Set(request.tools?.map((tool) => tool.function?.name));
  const names = new Set((candidate.tools ?? []).filter((name) => !own.has(name) && (ask.tools?.includes(name) ?? true)));
  const shown = config.tools.filter(({ id }) => names.has(id));
  if (shown.length === 0) return request;
  const functions = shown.map(({ id, description, parameters }) => ({
    type: 'function',
    function: { name: id, ...(description !== undefined && { description }), ...(parameters && { parameters }) },
  }));
  return { ...request, tools: [...(request.tools ?? []), ...functions] };
}
