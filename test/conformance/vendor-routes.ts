import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** What a vendor serves beside chat: the routes that hermes passes through, as far as an SDK can tell them apart. */
export type Route = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

/** Bytes that no text codec leaves alone. */
export const SPEECH = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 197 + (at >> 8)) % 256));
const VECTOR = [0.25, -1.5, 3.0000001, 1e-7];
const RESPONSE = {
  id: 'resp_fake',
  object: 'response',
  created_at: 1_790_000_000,
  status: 'completed',
  model: 'gpt-conf',
  output: [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: '你好 world', annotations: [] }] }],
  parallel_tool_calls: true,
  tool_choice: 'auto',
  tools: [],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
};

export function vendorRoutes(apiKey: string): Route {
  return async (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (/\/chat\/completions$/.test(path)) return false;
    const json = (value: unknown, status = 200): true => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      return true;
    };
    const refuse = (status: number, message: string, code: string | null): true =>
      json({ error: { message, type: 'invalid_request_error', param: null, code } }, status);
    if (request.headers.authorization !== `Bearer ${apiKey}`) return refuse(401, 'Incorrect API key provided.', 'invalid_api_key');
    const { bytes, size, digest } = await take(request);
    const body = /json/.test(request.headers['content-type'] ?? '') ? (JSON.parse(bytes.toString('utf8')) as Record<string, unknown>) : {};
    const file = { id: 'file-1', object: 'file', bytes: size, created_at: 1_790_000_000, filename: digest, purpose: 'assistants', status: 'processed' };
    switch (`${request.method} ${path.replace(/^\/v1/, '')}`) {
      case 'POST /embeddings':
        return json({
          object: 'list',
          model: body.model,
          data: [{ object: 'embedding', index: 0, embedding: embedding(body.encoding_format) }],
          usage: { prompt_tokens: 2, total_tokens: 2 },
        });
      case 'POST /files':
        return json(file);
      case 'GET /files':
        return json({ object: 'list', data: [file], has_more: false });
      case 'DELETE /files/file-1':
        return json({ id: 'file-1', object: 'file', deleted: true });
      case 'GET /files/file-1/content':
      case 'POST /audio/speech':
        response.writeHead(200, { 'content-type': 'audio/mpeg', 'content-length': SPEECH.length }).end(SPEECH);
        return true;
      case 'POST /audio/transcriptions':
        return json({ text: `${size > 1000} ${/^multipart\/form-data; boundary=/.test(request.headers['content-type'] ?? '')}` });
      case 'POST /moderations':
        return json({ id: 'modr-1', model: 'omni', results: [{ flagged: false, categories: {}, category_scores: {} }] });
      case 'POST /images/generations':
        return json({ created: 1_790_000_000, data: [{ b64_json: 'aGk=' }] });
      case 'POST /completions':
        return json({
          id: 'cmpl-1',
          object: 'text_completion',
          created: 1_790_000_000,
          model: body.model,
          choices: [{ text: 'hi', index: 0, logprobs: null, finish_reason: 'stop' }],
        });
      case 'POST /responses':
        return body.stream === true ? namedEvents(response) : json(RESPONSE);
      case 'GET /responses/resp_fake':
        return json(RESPONSE);
      case 'GET /batches':
        return json({ object: 'list', data: [], has_more: false });
      default:
        return refuse(404, `Unknown request URL: ${request.method} ${path}.`, 'unknown_url');
    }
  };
}

/** Little-endian floats in base64 are what the SDKs ask for by default. */
function embedding(format: unknown): unknown {
  return format === 'base64' ? Buffer.from(new Float32Array(VECTOR).buffer).toString('base64') : VECTOR;
}

function namedEvents(response: ServerResponse): true {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  const empty = { ...RESPONSE, status: 'in_progress', output: [] };
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const item = RESPONSE.output[0];
  const events = [
    { type: 'response.created', response: empty },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...place, part: { type: 'output_text', text: '', annotations: [] } },
    { type: 'response.output_text.delta', ...place, delta: '你好 ' },
    { type: 'response.output_text.delta', ...place, delta: 'world' },
    { type: 'response.output_text.done', ...place, text: '你好 world' },
    { type: 'response.content_part.done', ...place, part: item?.content[0] },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: RESPONSE },
  ];
  for (const [sequence_number, event] of events.entries()) response.write(`event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`);
  response.end();
  return true;
}

/** More than this is counted, not kept. */
const KEPT = 1_000_000;

async function take(request: IncomingMessage): Promise<{ bytes: Buffer; size: number; digest: string }> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size <= KEPT) parts.push(part as Buffer);
  }
  const bytes = Buffer.concat(parts);
  // A form's boundary is the client's own, fresh each time.
  const boundary = /boundary=(.+)$/.exec(request.headers['content-type'] ?? '')?.[1];
  const text = bytes.toString('latin1');
  return {
    bytes,
    size,
    digest: createHash('sha256')
      .update(boundary ? text.replaceAll(boundary, '') : text)
      .digest('hex'),
  };
}
