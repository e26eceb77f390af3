import type { Config } from '../contracts/config.ts';
import type { Entered } from '../contracts/door.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange, Principal } from '../contracts/exchange.ts';
import type { RecalledSession, Rooms } from '../contracts/rooms.ts';
import type { RuleReason } from '../contracts/routing.ts';
import type { ChatMessage, ChatRequest } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import type { AdminRoute } from './route.ts';

export interface DebugRouteDeps {
  rooms: Pick<Rooms, 'access' | 'routing' | 'schedule' | 'sessions' | 'context' | 'tools' | 'upstream'>;
  /** The openai-chat door: checks the body and lifts our fields out. */
  enter(body: unknown, headers: Readonly<Record<string, string>>): Entered;
  /** A bare exchange of this request: nothing runs in it. */
  begin(parent: DebugCaller, entered: Entered): Exchange;
  /** What a key may do, of the configuration or added at run time, by its id. */
  principalOf(config: Config, keyId: string): Principal | undefined | Promise<Principal | undefined>;
}
/** Who asks, and under which configuration. */
export type DebugCaller = Pick<Exchange, 'config' | 'headers' | 'principal'>;
export interface DebugRoute extends RuleReason {
  earlier: RuleReason[];
  model_before_cost: string;
  model: string;
  cost_rule: string | null;
  priority: string;
  upstreams: ReturnType<Rooms['upstream']['preview']>;
  request: { messages: number; tokens: number };
  session: { messages: number; tokens: number };
  trim: { budget: number; kept: number; dropped: number; tokens: number } | { error: string };
  tools: string[];
  unavailable_tools: string[];
}

/**
 * `POST /debug/route`: what would happen to this request, by the same rooms that would serve it. Calls no upstream and
 * stores nothing. Throws what the request itself would get (an unknown model, a service that is not the key's).
 */
export async function debugRoute(deps: DebugRouteDeps, exchange: DebugCaller, body: unknown): Promise<DebugRoute> {
  const { rooms } = deps;
  const { config } = exchange;
  const { chat, asKey } = readBody(body);
  const dry = deps.begin(exchange, deps.enter(chat, exchange.headers));
  dry.principal = asKey === undefined ? exchange.principal : await principalOf(deps, config, asKey);
  if (!dry.principal) throw new HermesError('internal_error', 'The dry run has no key to run for.');
  dry.caller = rooms.access.toCaller(dry, dry.principal);
  const own = dry.request.messages;
  const recalled = await recall(deps, dry, dry.caller.project);

  const { decision, earlier, rule, why, score } = await rooms.routing.compile(config).explain(dry);
  if (decision.priority !== undefined) dry.caller = { ...dry.caller, priority: decision.priority };
  dry.route = await rooms.schedule.apply(dry, decision);
  const entry = config.registry.find(dry.route.model);
  const upstreams = entry ? rooms.upstream.preview(entry, dry.session?.id, dry.caller.project) : [];
  const picked = upstreams.find((upstream) => upstream.picked)?.upstream;
  const target = entry?.upstreams.find(({ id }) => id === picked) ?? entry?.upstreams[0];
  const { offered, unavailable } = rooms.tools.names(dry);
  return {
    rule,
    why,
    ...(score !== undefined && { score }),
    earlier,
    model_before_cost: decision.model,
    model: dry.route.model,
    cost_rule: dry.route.costRule ?? null,
    priority: dry.caller.priority,
    upstreams,
    request: { messages: own.length, tokens: await countAll(rooms, own, target?.modelName ?? '') },
    session: { messages: recalled?.history.length ?? 0, tokens: recalled?.tokens ?? 0 },
    trim: target ? await trim(rooms, dry, target) : { error: 'the model has no upstream' },
    tools: offered,
    unavailable_tools: unavailable,
  };
}

export function debugRoutes(deps: DebugRouteDeps): AdminRoute[] {
  return [{ method: 'POST', pattern: '/debug/route', handle: async ({ exchange, body }) => ({ body: await debugRoute(deps, exchange, body) }) }];
}

/** `{ message }` is short for a chat body; `as_key` is ours alone. */
function readBody(body: unknown): { chat: Record<string, unknown>; asKey: string | undefined } {
  if (!isRecord(body)) throw new HermesError('invalid_request', 'Send a chat body, or { "message": "…" }.');
  const { message, as_key: asKey, ...chat } = body;
  if (asKey !== undefined && typeof asKey !== 'string') throw new HermesError('invalid_value', 'as_key is the id of a key.', { param: 'as_key' });
  if (message === undefined) return { chat, asKey };
  if (typeof message !== 'string') throw new HermesError('invalid_value', 'message is text.', { param: 'message' });
  const before: unknown[] = Array.isArray(chat.messages) ? chat.messages : [];
  return { chat: { ...chat, messages: [...before, { role: 'user', content: message }] }, asKey };
}

async function principalOf(deps: DebugRouteDeps, config: Config, keyId: string): Promise<Principal> {
  const principal = await deps.principalOf(config, keyId);
  if (principal) return principal;
  const known = config.auth.keys.map(({ id }) => id).join(', ');
  throw new HermesError('not_found', `There is no key ${JSON.stringify(keyId.slice(0, 100))}. Known: ${known}, and those that were added at run time.`, {
    param: 'as_key',
  });
}

/** The stored history put before the request, as a turn would have it. */
async function recall(deps: DebugRouteDeps, dry: Exchange, project: string): Promise<RecalledSession | undefined> {
  const { sessionId } = dry.ask;
  if (sessionId === undefined) return undefined;
  const recalled = await deps.rooms.sessions.recall(dry.config, project, sessionId);
  const own = dry.request.messages;
  const system = own.some(isSystem) ? [] : recalled.system;
  dry.request = {
    ...dry.request,
    messages: [...system, ...own.filter(isSystem), ...recalled.history, ...own.filter((message) => !isSystem(message))],
  } satisfies ChatRequest;
  dry.session = { id: sessionId, project, historyMessages: recalled.history.length, historyTokens: recalled.tokens };
  return recalled;
}
const isSystem = ({ role }: ChatMessage) => role === 'system' || role === 'developer';

async function trim(rooms: DebugRouteDeps['rooms'], dry: Exchange, target: Parameters<Rooms['context']['fit']>[2]): Promise<DebugRoute['trim']> {
  try {
    const { budget, kept, dropped, tokens } = await rooms.context.fit(dry, dry.request, target);
    return { budget, kept, dropped, tokens: tokens() };
  } catch (thrown) {
    // Too long even alone: that is what would happen, so it is part of the answer.
    if (thrown instanceof HermesError && thrown.code === 'context_length_exceeded') return { error: thrown.message };
    throw thrown;
  }
}

async function countAll(rooms: DebugRouteDeps['rooms'], messages: readonly ChatMessage[], modelName: string): Promise<number> {
  let tokens = 0;
  for (const message of messages) tokens += await rooms.context.countMessage(message, modelName);
  return tokens;
}
