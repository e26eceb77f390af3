import type { ServerResponse } from 'node:http';
import type { Door } from '../contracts/door.ts';
import { HermesError, toErrorBody } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import { appendMembers } from '../wire/append-members.ts';
import type { ChatCompletion } from '../wire/chat.ts';
import { collect } from '../wire/collect.ts';
import { isRecord, stringifyJson } from '../wire/json.ts';
import { toMarks } from './hermes-object.ts';

/** What the kernel's send buffer takes at once. */
const ONE_WRITE_BYTES = 16_384;

/** A stream whose client wants JSON is read here; an error of it becomes the answer's. */
export async function collectAnswer(exchange: Exchange, answer: Answer, maxBytes: number): Promise<Answer> {
  if (answer.stream === undefined) return answer;
  const { facts, headers } = answer;
  try {
    exchange.answer = { body: await collect(answer.stream, maxBytes), facts, headers };
  } catch (thrown) {
    exchange.answer = { error: thrown as HermesError, facts };
  }
  return exchange.answer as Answer;
}

/** The body's bytes: relayed as they came where the forms agree, with what has to be added behind. */
export function toBodyBytes(exchange: Exchange, answer: Answer, door: Door, hermes: () => Record<string, unknown>): Uint8Array {
  const { facts, raw } = answer;
  const more: Record<string, unknown> = toMarks(facts);
  if (exchange.wants.verbose) more.hermes = hermes();
  const adds = Object.keys(more).length > 0;
  const relayed = raw?.form === door.form ? raw.bytes : undefined;
  if (!adds && relayed) return relayed;
  const { view } = answer;
  if (!isCompletion(view)) return Buffer.from(typeof view === 'string' ? view : stringifyJson(inForm(door, exchange, answer) ?? null));
  if (relayed && !Object.keys(more).some((name) => name in view)) return appendMembers(relayed, more);
  const body = door.toBody(view, facts, exchange);
  return Buffer.from(stringifyJson(adds && isRecord(body) ? { ...body, ...more } : body));
}

/** What a plugin answered by itself; its errors are OpenAI's, as everywhere in the pipeline. */
function inForm(door: Door, exchange: Exchange, { status, view, facts }: Answer): unknown {
  const said = status >= 400 && isRecord(view) && isRecord(view.error) ? view.error : undefined;
  if (said === undefined || door.form === 'openai-chat') return view;
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  const error = new HermesError('plugin_error', text(said.message) ?? 'The request was refused.', {
    status,
    type: text(said.type) ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
    wireCode: text(said.code) ?? null,
    ...(typeof said.param === 'string' ? { param: said.param } : {}),
  });
  return door.toError(error, { ...facts, requestId: exchange.id });
}

export function isCompletion(view: unknown): view is ChatCompletion {
  return isRecord(view) && Array.isArray(view.choices);
}

export function send(response: ServerResponse, status: number, headers: Record<string, string>, bytes: Uint8Array): void {
  if (response.destroyed || response.writableEnded) return;
  headers['content-length'] = String(bytes.byteLength);
  response.writeHead(status, headers);
  // Byte for byte the same as Latin-1, and Node writes text together with the head: one system call, not two buffers gathered.
  if (bytes.byteLength <= ONE_WRITE_BYTES) response.end(toLatin1(bytes), 'latin1');
  else response.end(bytes);
}

function toLatin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}

/** An error outside the pipeline, in the shape that the client's SDK reads: OpenAI's, unless the client says which version of Anthropic's API it speaks. */
export function sendError(response: ServerResponse, error: HermesError, headers: Record<string, string>, doors: ReadonlyMap<string, Door>): void {
  const door = response.req.headers['anthropic-version'] === undefined ? undefined : doors.get('anthropic-messages');
  const body = door ? door.toError(error, { requestId: headers['x-request-id'] }) : toErrorBody(error);
  send(response, error.status, { 'content-type': 'application/json', ...headers, ...toErrorHeaders(error) }, Buffer.from(stringifyJson(body)));
}

/** SDKs retry by themselves what they know; they are told where a retry is pointless. */
export function toErrorHeaders(error: HermesError): Record<string, string> {
  const policy = !error.retryable && (error.status === 408 || error.status === 409 || error.status === 429 || error.status >= 500);
  return { ...(policy ? { 'x-should-retry': 'false' } : {}), ...error.headers };
}
