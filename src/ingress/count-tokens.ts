import type { IncomingMessage } from 'node:http';
import type { Door } from '../contracts/door.ts';
import type { Answer } from '../contracts/exchange.ts';
import { namedModel } from '../routing/choose-model.ts';
import { stringifyJson } from '../wire/json.ts';
import type { Gateway } from './gateway.ts';
import { beginBare, identified } from './identified.ts';
import { parseBody } from './parse-body.ts';
import { readBody } from './read-body.ts';
import { turnAwayWrongKey } from './turn-away.ts';

/** Source: OpenAI's cookbook, "How to count tokens": every reply is primed with three. */
const PRIMING = 3;

/** `POST /v1/messages/count_tokens`: what hermes itself reckons with for this model; no upstream is asked. */
export async function countTokens(gateway: Gateway, door: Door, request: IncomingMessage, traceId: string): Promise<Answer> {
  const { config } = gateway.generation();
  await turnAwayWrongKey(gateway, request, traceId);
  const bytes = await readBody(request, config.server.body_limit);
  return identified(gateway, beginBare(gateway, request, traceId, bytes), async (exchange) => {
    const { request: chat } = door.enter(parseBody(bytes, config.server.max_depth), exchange.headers);
    const { registry } = config;
    const { context, access } = gateway.rooms;
    const named = namedModel({ ask: exchange.ask, request: chat, caller: exchange.caller, principal: exchange.principal }, config, access.allows);
    const modelName = (named ?? registry.find(registry.defaultModel))?.upstreams[0]?.modelName ?? '';
    let tokens = PRIMING;
    for (const message of chat.messages) tokens += await context.countMessage(message, modelName);
    if (chat.tools?.length) tokens += await context.countText(stringifyJson(chat.tools), modelName);
    return { input_tokens: tokens };
  });
}
