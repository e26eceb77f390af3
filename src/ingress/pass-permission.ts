import type { IncomingMessage } from 'node:http';
import { DEFAULT_PASSTHROUGH } from '../access/passthrough-paths.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange, UpstreamTarget } from '../contracts/exchange.ts';
import { isRecord } from '../wire/json.ts';
import type { Gateway } from './gateway.ts';
import { parseBody } from './parse-body.ts';
import { readBody } from './read-body.ts';
import { hidesSeparators, normalisePath } from './router.ts';

/** What this key may reach; throws 403, or 404 when nothing is passed through at all. */
export function permit(exchange: Exchange): UpstreamTarget {
  const path = normalisePath(exchange.inbound.path) ?? '';
  if (hidesSeparators(exchange.inbound.path)) throw new HermesError('invalid_request', 'The path may not hold encoded slashes.');
  const { principal, config } = exchange;
  if (path.startsWith('/v1/organization')) throw new HermesError('permission_denied', 'The organization routes are not passed through.');
  const allowed = principal?.passthrough ?? DEFAULT_PASSTHROUGH;
  const stored = isDefault(allowed) && STORED_RESPONSE.test(path);
  const mayReach = principal?.admin || (!stored && allowed.some((entry) => reaches(entry, path)));
  if (!mayReach) throw new HermesError('permission_denied', `This key may not reach ${path.slice(0, 100)}; let its configuration list it under passthrough.`);
  const { target } = config.passthrough;
  if (target === undefined)
    throw new HermesError('not_found', `Nothing serves ${path.slice(0, 100)}: name an upstream as passthrough.upstream to have it passed through.`);
  if (target.apiKeyEnv !== undefined && target.apiKey === undefined)
    throw new HermesError('upstream_key_missing', `The upstream's key is missing: set ${target.apiKeyEnv}.`);
  return target;
}

/** A response that the vendor keeps, whoever asked for it: not among the stateless paths, though beneath one of them. */
const STORED_RESPONSE = /^\/v1\/responses\/(?!(?:input_tokens|compact)$)/;

function isDefault(allowed: readonly string[]): boolean {
  return allowed.length === DEFAULT_PASSTHROUGH.length && allowed.every((entry, index) => entry === DEFAULT_PASSTHROUGH[index]);
}

function reaches(entry: string, path: string): boolean {
  if (entry === '*' || entry === path) return true;
  if (entry.endsWith('*')) return path.startsWith(entry.slice(0, -1));
  return path.startsWith(`${entry}/`);
}

/**
 * The body of a key that may not use every model is read for its `model`; all others are never buffered. A model stands in JSON, or in
 * a field of a form (audio); every field of that name counts, since nobody knows which one the vendor takes.
 */
export async function heldToModels(gateway: Gateway, exchange: Exchange, request: IncomingMessage): Promise<Buffer | undefined> {
  const models = exchange.principal?.models ?? [];
  if (models.includes('*') || request.method === 'GET' || request.method === 'HEAD') return undefined;
  const { server } = exchange.config;
  const bytes = await readBody(request, server.body_limit);
  delete request.headers['content-encoding'];
  const form = /^\s*multipart\//i.test(request.headers['content-type'] ?? '');
  for (const model of form ? modelsInForm(bytes) : modelInJson(bytes, server.max_depth)) {
    const entry = exchange.config.registry.find(model);
    if (![model, entry?.id ?? model].some((name) => gateway.rooms.access.allows(models, name))) {
      throw new HermesError('model_not_allowed', `This key may not use the model '${model.slice(0, 128)}'.`, { param: 'model' });
    }
  }
  return bytes;
}

/** A body that is no JSON has no model that a JSON route would take. */
function modelInJson(bytes: Buffer, maxDepth: number): string[] {
  if (bytes.length === 0) return [];
  const body = parseBody(bytes, maxDepth);
  return isRecord(body) && typeof body.model === 'string' ? [body.model] : [];
}

const MODEL_FIELD = /name="?model"?[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n([^\r\n]*)/gi;

function modelsInForm(bytes: Buffer): string[] {
  return [...bytes.toString('latin1').matchAll(MODEL_FIELD)].map(([, value]) =>
    Buffer.from(value ?? '', 'latin1')
      .toString('utf8')
      .trim(),
  );
}

/** `/v1/files?x=1` on the upstream's base. */
export function toUrl(target: UpstreamTarget, path: string): string {
  const query = path.indexOf('?');
  const pathname = (normalisePath(path) ?? '/').replace(/^\/v1/, '');
  const base = target.apiBase.replace(/\/+$/, '');
  const url = new URL(`${target.provider === 'anthropic' && !/\/v1$/.test(base) ? `${base}/v1` : base}${pathname}${query < 0 ? '' : path.slice(query)}`);
  for (const [name, value] of Object.entries(target.query)) url.searchParams.set(name, value);
  return url.href;
}
