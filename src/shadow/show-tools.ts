import type { Ask, RouteDecision } from '../contracts/exchange.ts';
import type { ChatRequest, FunctionTool } from '../wire/chat.ts';

/** The candidate may look at its tools but not use them: the permission is empty, so that whatever its model calls, nothing is run. */
export function withoutTools(candidate: RouteDecision): RouteDecision {
  return { ...candidate, tools: [] };
}

/** Shows the candidate's model the tools it would be offered, as functions that somebody else runs: it answers as it would. */
export function showTools(request: ChatRequest, candidate: RouteDecision, ask: Ask, toFunctions: (names: readonly string[]) => FunctionTool[]): ChatRequest {
  const own = new Set(request.tools?.map((tool) => tool.function?.name));
  const names = (candidate.tools ?? []).filter((name) => ask.tools?.includes(name) ?? true);
  const functions = toFunctions(names).filter((tool) => !own.has(tool.function.name));
  if (functions.length === 0) return request;
  return { ...request, tools: [...(request.tools ?? []), ...functions] };
}
