import type { UpstreamTarget } from '../../contracts/exchange.ts';

const DEFAULT_PATH = '/chat/completions';

const addresses = new WeakMap<UpstreamTarget, string>();

/** Where a call goes. `quirks.path`: another path after the base, `{model}` in it is the model's name (Azure's deployments). */
export function toAddress(target: UpstreamTarget): string {
  const known = addresses.get(target);
  if (known !== undefined) return known;
  const address = addressOf(target);
  addresses.set(target, address);
  return address;
}

function addressOf(target: UpstreamTarget): string {
  const base = (target.apiBase || 'https://api.openai.com/v1').replace(/\/+$/, '');
  const { path } = target.quirks;
  const given = typeof path === 'string' ? path.replaceAll('{model}', encodeURIComponent(target.modelName)) : DEFAULT_PATH;
  const url = base.endsWith(given) ? base : base + given;
  const query = new URLSearchParams({ ...(target.apiVersion ? { 'api-version': target.apiVersion } : {}), ...target.query }).toString();
  return query === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${query}`;
}

/** The only headers that go out: nothing of the caller's is among them. */
export function toHeaders(target: UpstreamTarget, stream: boolean): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'user-agent': 'hermes-agent',
  };
  if (target.apiKey) {
    headers.authorization = `Bearer ${target.apiKey}`;
    // Azure's keys go by this name; its bearer tokens are another thing.
    if (target.apiVersion !== undefined || /\.azure\.com(\/|:|$)/.test(target.apiBase)) headers['api-key'] = target.apiKey;
  }
  for (const [name, value] of Object.entries(target.headers)) headers[name.toLowerCase()] = value;
  return headers;
}
