import type { IncomingMessage } from 'node:http';
import type { Door } from '../contracts/door.ts';
import type { Answer } from '../contracts/exchange.ts';
import type { RecalledSession } from '../contracts/rooms.ts';
import type { Form } from '../contracts/stream.ts';
import { namedModel } from '../routing/choose-model.ts';
import { stringifyJson } from '../wire/json.ts';
import type { Gateway } from './gateway.ts';
import { beginBare, identified } from './identified.ts';
import { parseBody } from './parse-body.ts';
import { readBody } from './read-body.ts';
import { turnAwayWrongKey } from './turn-away.ts';

const NOTHING: Pick<RecalledSession, 'system' | 'history'> = { system: [], history: [] };
/** Source: OpenAI's cookbook, "How to count tokens": every reply is primed with three. */
const PRIMING = 3;

/** Where tokens are counted: the door of the request, and what the answer calls itself. */
export const COUNT_PATHS: Readonly<Record<string, { form: Form; object?: string }>> = {
  '/v1/messages/count_tokens': { form: 'anthropic-messages' },
  '/v1/responses/input_tokens': { form: 'openai-responses', object: 'response.input_tokens' },
};

/** What hermes itself reckons with for this model, the conversation that the request goes on with included; no upstream is asked. */
export async function countTokens(gateway: Gateway, door: Door, request: IncomingMessage, traceId: string): Promise<Answer> {
  const { config } = gateway.generation();
  await turnAwayWrongKey(gateway, request, traceId);
  const bytes = await readBody(request, config.server.body_limit);
  return identified(gateway, beginBare(gateway, request, traceId, bytes, door.form), async (exchange) => {
    const { request: chat, ask } = door.enter(parseBody(bytes, config.server.max_depth), exchange.headers);
    const { registry } = config;
    const { context, access, sessions } = gateway.rooms;
    exchange.request = chat;
    if (ask.refers) await sessions.resolve(exchange);
    const { system, history } = ask.sessionId === undefined ? NOTHING : await sessions.recall(config, exchange.caller?.project ?? '', ask.sessionId);
    const { messages } = exchange.request;
    const instructed = messages.some(({ role }) => role === 'system' || role === 'developer');
    const named = namedModel({ ask: exchange.ask, request: chat, caller: exchange.caller, principal: exchange.principal }, config, access.allows);
    const modelName = (named ?? registry.find(registry.defaultModel))?.upstreams[0]?.modelName ?? '';
    let tokens = PRIMING;
    for (const message of [...(instructed ? [] : system), ...history, ...messages]) tokens += await context.countMessage(message, modelName);
    if (chat.tools?.length) tokens += await context.countText(stringifyJson(chat.tools), modelName);
    return { input_tokens: tokens };
  });
}
