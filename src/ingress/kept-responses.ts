import type { KeptForm } from '../contracts/door.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { ResponseName } from '../contracts/rooms.ts';
import { stringifyJson } from '../wire/json.ts';
import type { Gateway } from './gateway.ts';

/** Ids that the Responses door makes; no vendor's look like them. */
const KEPT = /^\/v1\/responses\/(resp_(?:[A-Za-z0-9_-]+_)?[0-9a-f]{32})(?:\/(.*))?$/;
const MOST_ITEMS = 100;
const ITEMS = 20;

export function isKeptPath(path: string): boolean {
  return KEPT.test(path);
}

/**
 * What hermes keeps of a response, for the one who was given it and for nobody else: `GET`, `DELETE`, `GET …/input_items`.
 * Source of the forms: OpenAI's API reference, "Responses".
 */
export async function serveKept(gateway: Gateway, kept: KeptForm, exchange: Exchange, path: string): Promise<unknown> {
  const [, id = '', rest] = KEPT.exec(path) ?? [];
  const { method } = exchange.inbound;
  const { sessions } = gateway.rooms;
  const session = kept.sessionOf(id);
  const name: ResponseName = { project: exchange.caller?.project ?? '', session: session ?? '', owner: exchange.principal?.id ?? '', id };
  if (rest === 'cancel' && method === 'POST') throw new HermesError('invalid_request', 'Only responses that run in the background can be cancelled.');
  if (rest !== undefined && rest !== 'input_items') throw new HermesError('not_found', `There is nothing at ${path.slice(0, 100)}.`);
  if (rest === undefined && method === 'DELETE') {
    if (session === undefined || !(await sessions.deleteResponse(name))) throw notFound(id);
    return { id, object: 'response', deleted: true };
  }
  if (method !== 'GET' && method !== 'HEAD')
    throw new HermesError('method_not_allowed', 'Use GET or DELETE on this path.', { headers: { allow: rest === undefined ? 'GET, DELETE' : 'GET' } });
  const found = session === undefined ? undefined : await sessions.findResponse(name);
  if (found === undefined) throw notFound(id);
  const query = new URL(exchange.inbound.path, 'http://hermes').searchParams;
  if (rest === 'input_items') return toPage(kept.toItems(id, found.input), query);
  if (query.get('stream') === 'true')
    throw new HermesError('invalid_request', 'A response that is over is given as a whole: leave stream out.', { param: 'stream' });
  return found.view;
}

function toPage(items: Record<string, unknown>[], query: URLSearchParams): Record<string, unknown> {
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw new HermesError('invalid_value', "'order' is asc or desc.", { param: 'order' });
  const limit = Number(query.get('limit') ?? ITEMS);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_ITEMS)
    throw new HermesError('invalid_value', `'limit' is a whole number from 1 to ${MOST_ITEMS}.`, { param: 'limit' });
  const ordered = order === 'asc' ? items : items.toReversed();
  const after = query.get('after');
  const begin = after === null ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== null && begin === 0) throw new HermesError('invalid_value', `There is no item ${stringifyJson(after.slice(0, 100))} here.`, { param: 'after' });
  const data = ordered.slice(begin, begin + limit);
  return { object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: begin + data.length < ordered.length };
}

function notFound(id: string): HermesError {
  return new HermesError(
    'not_found',
    `Response with id '${id.slice(0, 300)}' not found: it was made with store: false, deleted, or given to another key. Its conversation goes on with previous_response_id.`,
  );
}
