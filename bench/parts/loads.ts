import { KEY } from './hermes-config.ts';
import type { Server } from './servers.ts';
import type { Load } from './wrk.ts';

export const CHAT = '/v1/chat/completions';
export const HEADERS = { 'content-type': 'application/json', authorization: `Bearer ${KEY}` };

/** 800 bytes: a system prompt, a short talk and a question. */
const BODY = {
  model: 'auto',
  messages: [
    { role: 'system', content: 'You are the assistant of an online shop. Answer briefly, in the language of the question, and never make up an order.' },
    { role: 'user', content: 'Hello, I bought a pair of shoes last week.' },
    { role: 'assistant', content: 'Hello! How can I help you with them?' },
    { role: 'user', content: `Where is my order 20240515 now? ${'It was to arrive yesterday and I have not heard a thing. '.repeat(6)}` },
  ],
  temperature: 0.2,
};

/** A chat; `more` goes over the usual body. */
export function chatBody(more: object = {}): string {
  return JSON.stringify({ ...BODY, ...more });
}
/** A long story before the question, for the upstream that reads it all. */
export function largeBody(bytes: number): string {
  return chatBody({ model: 'whole_model', messages: [...BODY.messages, { role: 'user', content: 'Where is it? '.repeat(Math.ceil(bytes / 13)) }] });
}

export function load(body: string, { path = CHAT, connections = 32, headers = {}, lua }: Partial<Load> = {}): Load {
  return { path, body, headers: { ...HEADERS, ...headers }, connections, ...(lua ? { lua } : {}) };
}

/** Enough that no two requests in flight are turns of one session. */
const SESSIONS = 200;
const HISTORY_TURNS = 25;
/** Each request is the next session's turn. */
export const IN_TURN = `local number = 0
request = function()
  number = (number + 1) % ${SESSIONS}
  wrk.headers["x-hermes-session-id"] = "bench-" .. number
  return wrk.format()
end`;
/** A turn: what was said before is in the session. */
export function turnBody(more: object = {}): string {
  return chatBody({ messages: [BODY.messages[0], BODY.messages.at(-1)], ...more });
}
const filled = new WeakSet<Server>();
/** Every session gets a past of 50 messages, once a server. */
export async function fillSessions(server: Server): Promise<void> {
  if (filled.has(server)) return;
  filled.add(server);
  const talk = async (number: number): Promise<void> => {
    for (let turn = 0; turn < HISTORY_TURNS; turn++) {
      const headers = { ...HEADERS, 'x-hermes-session-id': `bench-${number}` };
      const response = await fetch(`http://127.0.0.1:${server.port}${CHAT}`, { method: 'POST', headers, body: turnBody() });
      if (response.status !== 200) throw new Error(`a session could not be filled: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  for (let from = 0; from < SESSIONS; from += 20) await Promise.all(Array.from({ length: 20 }, (_, index) => talk(from + index)));
}

/** By name, for what looks at one of them closely: the bodies. Those of sessions are turns. */
const BODIES: Readonly<Record<string, () => string>> = {
  json: () => chatBody(),
  sse: () => chatBody({ model: 'stream_model', stream: true }),
  'sse-events': () => chatBody({ model: 'events_model', stream: true }),
  'slow-streams': () => chatBody({ model: 'events_model', stream: true }),
  'body-100k': () => largeBody(100_000),
  anthropic: () => chatBody({ model: 'claude_model' }),
  'anthropic-sse': () => chatBody({ model: 'claude_stream_model', stream: true }),
  session: () => turnBody(),
  'session-redis': () => turnBody(),
  'session-sse': () => turnBody({ model: 'stream_model', stream: true }),
};
/** Throws where there is none of that name. */
export function namedLoad(name: string): { sent: Load; session: boolean } {
  const body = BODIES[name];
  if (body === undefined) throw new Error(`There is no load "${name}"; there are ${Object.keys(BODIES).join(', ')}.`);
  const session = name.startsWith('session');
  return { sent: load(body(), session ? { lua: IN_TURN } : {}), session };
}
