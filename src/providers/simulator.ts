import { defineProvider } from '../contracts/provider.ts';
import type { ChatChunk, ChatCompletion, ChatRequest } from '../wire/chat.ts';
import { parseJson, parseJsonBytes, stringifyJson } from '../wire/json.ts';
import { readEvent } from '../wire/sse.ts';
import { completionOf, streamOf } from './simulator/answer.ts';
import { parseOptions } from './simulator/options.ts';
import { toPlan } from './simulator/plan.ts';

/**
 * A model in this process, for demonstrations and tests: no network, no key, the same answer to the same request. How it
 * misbehaves is told by `model_name` (`demo?slow=200`) or by the newest user message (`[[fail 500]]`): docs/providers.md.
 */
export default defineProvider({
  form: 'openai-chat',
  defaults: { apiBase: 'simulator://local' },
  toUpstream(request, target) {
    const asked = request.max_completion_tokens ?? request.max_tokens ?? target.maxTokens;
    const limit = asked == null ? undefined : Math.min(asked, target.maxTokens ?? asked);
    const { max_tokens: _old, max_completion_tokens: _new, ...rest } = request;
    const body = { ...rest, ...target.extraBody, model: target.modelName, ...(limit === undefined ? {} : { max_tokens: limit }) };
    return {
      method: 'POST',
      url: 'simulator://local/chat/completions',
      headers: { 'content-type': 'application/json' },
      body: stringifyJson(body),
      stream: request.stream === true,
      droppedParams: [],
      context: undefined,
    };
  },
  fromUpstream: (bytes) => parseJsonBytes(bytes) as ChatCompletion,
  createReader: () => ({
    read(event) {
      const { data } = readEvent(Buffer.from(event));
      if (data === undefined) return null;
      return data === '[DONE]' ? 'end' : (parseJson(data) as ChatChunk);
    },
  }),
  toFailure: (status, _headers, bytes) => ({
    kind: status === 429 ? 'rate_limited' : 'overloaded',
    status,
    message: Buffer.from(bytes).toString('utf8'),
    type: 'server_error',
    code: null,
    param: null,
    retryAfterMs: undefined,
  }),
  async *answer(call, signal) {
    const request = parseJson(typeof call.body === 'string' ? call.body : Buffer.from(call.body).toString('utf8')) as ChatRequest;
    const { name, options } = parseOptions(request);
    const plan = toPlan(request, options);
    if (call.stream) yield* streamOf(name, plan, options, signal);
    else yield await completionOf(name, plan, options, signal);
  },
});
