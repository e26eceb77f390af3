import type { Exchange } from '../contracts/exchange.ts';
import type { ChatRequest, FunctionTool } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import type { RegisteredTool } from './registered-tool.ts';

/** Everything that decides what is on offer. */
export type OfferSubject = Pick<Exchange, 'config' | 'ask' | 'request' | 'caller' | 'principal' | 'route'>;
export type Allows = (patterns: readonly string[], name: string) => boolean;

/** The server-side tools of one request. */
export interface Offer {
  tools: ReadonlyMap<string, RegisteredTool>;
  /** Named by the request, and not to be had. */
  unavailable: string[];
  /** The client's own function names. */
  client: ReadonlySet<string>;
  sideEffects: boolean;
}

const NONE: ReadonlyMap<string, RegisteredTool> = new Map();

/** What the request names, or else its rule: ids of tools, and patterns. */
export function namesOf({ ask, route }: Pick<OfferSubject, 'ask' | 'route'>): readonly string[] {
  return ask.tools ?? route?.tools ?? [];
}

/**
 * What the request named (all of the rule's, if it named none) ∩ the rule's ∩ the key's ∩ each tool's `allow`. Undefined:
 * nothing was named and nothing is on offer, so hermes has no part in this request's tool calls.
 */
export function toOffer(subject: OfferSubject, known: ReadonlyMap<string, RegisteredTool>, allows: Allows): Offer | undefined {
  const { ask, request, route } = subject;
  const rule = route?.tools;
  const names = namesOf(subject);
  if (names.length === 0) return undefined;
  const client = clientNames(request);
  const tools = new Map<string, RegisteredTool>();
  const unavailable: string[] = [];
  for (const name of new Set(names.flatMap((name) => expand(name, known, allows)))) {
    const tool = known.get(name);
    // Several answers side by side cannot share one run of a tool.
    if (tool && (request.n ?? 1) <= 1 && !client.has(name) && (rule === undefined || allows(rule, name)) && isAllowed(tool, subject, allows))
      tools.set(name, tool);
    else if (ask.tools) unavailable.push(name);
  }
  if (tools.size === 0 && unavailable.length === 0) return undefined;
  return { tools: tools.size > 0 ? tools : NONE, unavailable, client, sideEffects: [...tools.values()].some((tool) => tool.side_effects) };
}

/** Its functions, and the native tools of Anthropic that a client runs itself: `bash`, `computer`. What the vendor runs is never asked of a client. */
function clientNames({ tools = [], anthropic }: ChatRequest): Set<string> {
  const native = isRecord(anthropic) && Array.isArray(anthropic.tools) ? anthropic.tools : [];
  const names = [...tools.map((tool) => tool.function?.name), ...native.map((tool: unknown) => (isRecord(tool) ? tool.name : undefined))];
  return new Set(names.filter((name) => typeof name === 'string'));
}

function isAllowed(tool: RegisteredTool, { caller, principal }: OfferSubject, allows: Allows): boolean {
  return (
    allows(principal?.tools ?? [], tool.id) && allows(tool.allow.services, caller?.service ?? '') && allows(tool.allow.user_levels, caller?.userLevel ?? '')
  );
}

/** A pattern that fits nothing stands for itself. */
function expand(name: string, known: ReadonlyMap<string, RegisteredTool>, allows: Allows): string[] {
  const fitting = name.includes('*') ? [...known.keys()].filter((id) => allows([name], id)) : [];
  return fitting.length > 0 ? fitting : [name];
}

/** As the model is told of it. Ids with dots stay as they are: providers map names. */
export function toFunctionTool({ id, description, parameters }: RegisteredTool): FunctionTool {
  return {
    type: 'function',
    function: { name: id, ...(description === undefined ? {} : { description }), parameters: parameters ?? { type: 'object', properties: {} } },
  };
}
