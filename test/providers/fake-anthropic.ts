import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { complaint } from './anthropic-request-validator.ts';

type Block = Record<string, unknown> & { type: string };
export interface AnthropicCall {
  headers: IncomingHttpHeaders;
  raw: string;
  body: { model: string; stream?: boolean; messages: { role: string; content: Block[] }[]; [field: string]: unknown };
}
export interface FakeAnthropic {
  url: string;
  calls: AnthropicCall[];
  violations: string[];
  /** The bodies of all answers, as sent. */
  sent: string[];
  close(): Promise<void>;
}

/** A Messages API that refuses what the real one refuses, signatures that it has not made among it. `answer` gives the content blocks. */
export async function createFakeAnthropic(answer: (call: AnthropicCall) => Block[]): Promise<FakeAnthropic> {
  const calls: AnthropicCall[] = [];
  const violations: string[] = [];
  const sent: string[] = [];
  const signed = new Map<unknown, unknown>();
  const server = createServer(async (request, response) => {
    let raw = '';
    for await (const part of request) raw += part;
    const call: AnthropicCall = { headers: request.headers, raw, body: JSON.parse(raw) };
    // A string is one text block to the API.
    for (const message of call.body.messages ?? []) if (typeof message.content === 'string') message.content = [{ type: 'text', text: message.content }];
    calls.push(call);
    const version = String(request.headers['anthropic-version']);
    const keyed = version === '2023-06-01' ? request.headers['x-api-key'] === 'sk-ant' : request.headers.authorization === 'Bearer sk-ant';
    const wrong = keyed ? (complaint(raw, version) ?? forged(call, signed)) : 'invalid key';
    if (wrong) {
      violations.push(wrong);
      const body = JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: wrong } });
      response.writeHead(400, { 'content-type': 'application/json' }).end(body);
      return;
    }
    const content = answer(call);
    for (const block of content) if (block.type === 'thinking') signed.set(block.signature, block.thinking);
    sent.push(reply(response, call, content));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    violations,
    sent,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function forged({ body }: AnthropicCall, signed: ReadonlyMap<unknown, unknown>): string | undefined {
  const blocks = body.messages.flatMap(({ content }) => content);
  return blocks.some((block) => block.type === 'thinking' && signed.get(block.signature) !== block.thinking)
    ? 'Invalid `signature` in `thinking` block'
    : undefined;
}

const USAGE = { input_tokens: 7, cache_creation_input_tokens: 2, cache_read_input_tokens: 1, output_tokens: 5 };

function reply(response: ServerResponse, { body }: AnthropicCall, content: Block[]): string {
  const reason = content.some((block) => block.type === 'tool_use') ? 'tool_use' : 'end_turn';
  const message = { id: 'msg_fake', type: 'message', role: 'assistant', model: body.model, content, stop_reason: reason, stop_sequence: null, usage: USAGE };
  if (!body.stream) {
    const text = JSON.stringify(message);
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    return text;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const events = toEvents(message, content, reason).map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  for (const event of events) response.write(event);
  response.end();
  return events.join('');
}

function takesInput({ type }: Block): boolean {
  return type === 'tool_use' || type === 'server_tool_use';
}

function toEvents(message: object, content: Block[], reason: string): Block[] {
  const events: Block[] = [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: { ...USAGE, output_tokens: 1 } } },
    { type: 'ping' },
  ];
  for (const [index, block] of content.entries()) {
    const delta = (fields: object): number => events.push({ type: 'content_block_delta', index, delta: fields });
    const empty =
      block.type === 'text'
        ? { text: '', ...(block.citations ? { citations: [] } : {}) }
        : takesInput(block)
          ? { input: {} }
          : block.type === 'thinking'
            ? { thinking: '', signature: '' }
            : {};
    events.push({ type: 'content_block_start', index, content_block: { ...block, ...empty } });
    if (block.type === 'text') for (const text of String(block.text).match(/[\s\S]{1,3}/gu) ?? []) delta({ type: 'text_delta', text });
    if (block.type === 'text' && Array.isArray(block.citations)) for (const citation of block.citations) delta({ type: 'citations_delta', citation });
    if (takesInput(block))
      for (const partial_json of JSON.stringify(block.input).match(/[\s\S]{1,4}/gu) ?? []) delta({ type: 'input_json_delta', partial_json });
    if (block.type === 'thinking') {
      delta({ type: 'thinking_delta', thinking: block.thinking });
      delta({ type: 'signature_delta', signature: block.signature });
    }
    events.push({ type: 'content_block_stop', index });
  }
  return [
    ...events,
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: USAGE.output_tokens } },
    { type: 'message_stop' },
  ];
}
