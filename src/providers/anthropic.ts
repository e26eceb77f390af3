import type { UpstreamTarget } from '../contracts/exchange.ts';
import { defineProvider, type UpstreamCall } from '../contracts/provider.ts';
import { stringifyJson } from '../wire/json.ts';
import { hasLoneSurrogates, type JsonSource, spliceJson } from '../wire/splice-json.ts';
import { createNameMap } from '../wire/tool-names.ts';
import { type AnswerContext, toCompletion } from './anthropic/answer.ts';
import { toCallerHeaders } from './anthropic/caller-headers.ts';
import { toFailure } from './anthropic/failure.ts';
import { AnthropicReader } from './anthropic/reader.ts';
import { saysTheSame } from './anthropic/says-the-same.ts';
import { BEARER_VERSION, toAnthropicRequest } from './anthropic/to-request.ts';

const DEFAULT_VERSION = '2023-06-01';

/** Anthropic's Messages API, in both of its living versions. What is carried and what is not: docs/anthropic.md. */
export default defineProvider({
  form: 'anthropic-messages',
  defaults: { apiBase: 'https://api.anthropic.com', apiKeyEnv: 'ANTHROPIC_API_KEY' },
  toUpstream(request, target, _attempt, caller) {
    const apiVersion = target.apiVersion ?? DEFAULT_VERSION;
    const { body, dropped, names } = toAnthropicRequest(request, target, apiVersion);
    const context: AnswerContext = { names, legacy: Array.isArray(request.functions) && !request.tools?.length };
    return {
      method: 'POST',
      url: messagesUrl(target),
      headers: toHeaders(target, apiVersion, request.anthropic),
      body: (caller && spliced(body, caller)) ?? wellFormed(stringifyJson(body)),
      stream: request.stream === true,
      droppedParams: dropped,
      context,
    };
  },
  fromUpstream: (bytes, call) => toCompletion(bytes, contextOf(call)),
  createReader: (call) => new AnthropicReader(contextOf(call)),
  toHeaders: toCallerHeaders,
  toFailure,
});

function contextOf(call: UpstreamCall): AnswerContext {
  const { context } = call;
  return isAnswerContext(context) ? context : { names: createNameMap([]), legacy: false };
}

function isAnswerContext(context: unknown): context is AnswerContext {
  return typeof context === 'object' && context !== null && 'names' in context && 'legacy' in context;
}

/** A client's own words, where translating there and back has not had to change what they say. */
function spliced(body: Record<string, unknown>, caller: JsonSource): Uint8Array | undefined {
  if (hasLoneSurrogates(caller.bytes)) return undefined;
  return spliceJson(body, caller, { same: saysTheSame, write: (value) => wellFormed(stringifyJson(value)) });
}

/** The base address may end in `/v1` or not, as either SDK's setting would. */
function messagesUrl(target: UpstreamTarget): string {
  const base = target.apiBase.replace(/\/+$/, '');
  const url = `${base.endsWith('/v1') ? base : `${base}/v1`}/messages`;
  const query = new URLSearchParams(target.query).toString();
  return query ? `${url}?${query}` : url;
}

function toHeaders(target: UpstreamTarget, apiVersion: string, native: unknown): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': 'application/json', 'anthropic-version': apiVersion };
  if (target.apiKey !== undefined) {
    if (apiVersion >= BEARER_VERSION) headers.authorization = `Bearer ${target.apiKey}`;
    else headers['x-api-key'] = target.apiKey;
  }
  for (const [name, value] of Object.entries(target.headers)) headers[name.toLowerCase()] = value;
  const betas = typeof native === 'object' && native !== null && 'betas' in native ? native.betas : undefined;
  if (typeof betas === 'string' && betas !== '') headers['anthropic-beta'] = [headers['anthropic-beta'], betas].filter(Boolean).join(',');
  return headers;
}

/** Half of a surrogate pair (a text cut in the middle of an emoji) is no valid JSON to the API: it becomes U+FFFD. */
function wellFormed(json: string): string {
  if (!/\\ud[89a-f]/i.test(json)) return json;
  return json.replace(/\\(?:u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/g, (sequence) => (sequence.length === 6 ? '\ufffd' : sequence));
}
