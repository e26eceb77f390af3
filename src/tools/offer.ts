import type { Config, ToolConfig } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { FunctionTool } from '../wire/chat.ts';

/** Everything that decides what is on offer. */
export type OfferSubject = Pick<Exchange, 'config' | 'ask' | 'request' | 'caller' | 'principal' | 'route'>;
export type Allows = (patterns: readonly string[], name: string) => boolean;

/** The server-side tools of one request. */
export interface Offer {
  tools: ReadonlyMap<string, ToolConfig>;
  /** Named by the request, and not to be had. */
  unavailable: string[];
  /** The client's own function names. */
  client: ReadonlySet<string>;
  sideEffects: boolean;
}

const NONE: ReadonlyMap<string, ToolConfig> = new Map();
/** One map a generation. */
const byId = new WeakMap<Config, ReadonlyMap<string, ToolConfig>>();

/**
 * What the request named (all of the rule's, if it named none) ∩ the rule's ∩ the key's ∩ each tool's `allow`. Undefined:
 * nothing was named and nothing is on offer, so hermes has no part in this request's tool calls.
 */
export function toOffer(subject: OfferSubject, allows: Allows): Offer | undefined {
  const { config, ask, request, route } = subject;
  const rule = route?.tools;
  const names = ask.tools ?? rule ?? [];
  if (names.length === 0) return undefined;
  const known = toolsOf(config);
  const client = new Set((request.tools ?? []).map((tool) => tool.function?.name).filter((name) => name !== undefined));
  const tools = new Map<string, ToolConfig>();
  const unavailable: string[] = [];
  for (const name of new Set(names)) {
    const tool = known.get(name);
    // Several answers side by side cannot share one run of a tool.
    if (tool && (request.n ?? 1) <= 1 && !client.has(name) && (rule?.includes(name) ?? true) && isAllowed(tool, subject, allows)) tools.set(name, tool);
    else if (ask.tools) unavailable.push(name);
  }
  if (tools.size === 0 && unavailable.length === 0) return undefined;
  return { tools: tools.size > 0 ? tools : NONE, unavailable, client, sideEffects: [...tools.values()].some((tool) => tool.side_effects) };
}

function isAllowed(tool: ToolConfig, { caller, principal }: OfferSubject, allows: Allows): boolean {
  return (
    allows(principal?.tools ?? [], tool.id) && allows(tool.allow.services, caller?.service ?? '') && allows(tool.allow.user_levels, caller?.userLevel ?? '')
  );
}

function toolsOf(config: Config): ReadonlyMap<string, ToolConfig> {
  let tools = byId.get(config);
  if (tools === undefined) {
    tools = new Map(config.tools.map((tool) => [tool.id, tool]));
    byId.set(config, tools);
  }
  return tools;
}

/** As the model is told of it. Ids with dots stay as they are: providers map names. */
export function toFunctionTool({ id, description, parameters }: ToolConfig): FunctionTool {
  return {
    type: 'function',
    function: { name: id, ...(description === undefined ? {} : { description }), parameters: parameters ?? { type: 'object', properties: {} } },
  };
}
