import type { UpstreamTarget } from '../../contracts/exchange.ts';
import { withoutCarriage } from '../../wire/carriage.ts';
import type { ChatMessage, ChatRequest } from '../../wire/chat.ts';
import type { JsonSource } from '../../wire/splice-json.ts';
import type { NameMap } from '../../wire/tool-names.ts';
import { type CustomNames, writeCustomTools } from './custom-tools.ts';
import { isOpenAiModel, isOthersModel, isReasoningModel } from './family.ts';
import { toMessages } from './messages.ts';
import { nameRequest } from './names.ts';
import { withEmptyReasoning, withoutForeignReasoning } from './reasoning.ts';
import { fitTranslated } from './translated.ts';

type Body = Record<string, unknown>;

export interface OutgoingBody {
  body: Body;
  /** When names were mapped. */
  names: NameMap | undefined;
  /** When functions were written as custom tools. */
  custom: CustomNames | undefined;
  dropped: string[];
}

/**
 * The request as this upstream takes it: the caller's keys in their order, only what must be is changed. `caller`: the body
 * as it came, when it came in this form.
 */
export function toBody(asked: ChatRequest, target: UpstreamTarget, caller: JsonSource | undefined): OutgoingBody {
  const { request, dropped } = caller ? { request: asked, dropped: [] } : fitTranslated(asked, target);
  // Before the carriage goes: it tells whose reasoning it is.
  const clean = withoutCarriage(withMessages(request, withEmptyReasoning(withoutForeignReasoning(request.messages, target), target)));
  const named = nameRequest(withMessages(clean, toMessages(clean.messages, target)));
  // Assigned in place, so that every key keeps its position; a request without a model gets it first.
  const body: Body = 'model' in named.request ? copyOf(named.request) : { model: '', ...named.request };
  body.model = target.modelName;
  setStreamOptions(body, target);
  setMaxTokens(body, target);
  dropEmptyTools(body, caller);
  const custom = writeCustomTools(body, named.request, target);
  return { body: Object.assign(body, target.extraBody), names: named.names, custom, dropped };
}

/** Members are set on it later: in Node 20 a spread object would get a shape of its own by each (docs/performance.md). Only a spread keeps `__proto__` as data. */
function copyOf(request: ChatRequest): Body {
  return Object.hasOwn(request, '__proto__') ? { ...request } : Object.assign({}, request);
}

/** Copied only where there is something to change: this is on every call's way. */
function withMessages(request: ChatRequest, messages: ChatMessage[]): ChatRequest {
  return messages === request.messages ? request : { ...request, messages };
}

/** Usage is always asked for: the books need it; who did not ask does not see it. */
function setStreamOptions(body: Body, target: UpstreamTarget): void {
  if (body.stream !== true || target.quirks.stream_options === false) delete body.stream_options;
  else body.stream_options = { ...(body.stream_options as object | null | undefined), include_usage: true };
}

/** One field, never both: the model's default where the request has none, its ceiling where the request has more. */
function setMaxTokens(body: Body, target: UpstreamTarget): void {
  const asked = (body.max_completion_tokens ?? body.max_tokens ?? undefined) as number | undefined;
  const limit = asked === undefined ? target.maxTokens : Math.min(asked, target.maxTokens ?? asked);
  const field = fieldOf(body, target);
  const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  delete body[other];
  if (limit === undefined) delete body[field];
  else body[field] = limit;
}

function fieldOf(body: Body, target: UpstreamTarget): 'max_tokens' | 'max_completion_tokens' {
  const written = target.quirks.max_tokens_field;
  if (written === 'max_tokens' || written === 'max_completion_tokens') return written;
  // OpenAI's reasoning models refuse the old name; the servers of others mostly know it alone.
  if (isReasoningModel(target.modelName)) return 'max_completion_tokens';
  if (isOthersModel(target)) return 'max_tokens';
  return body.max_completion_tokens != null && (body.max_tokens == null || isOpenAiModel(target)) ? 'max_completion_tokens' : 'max_tokens';
}

/** An empty list is refused, and without tools what speaks of them is, too: a caller that names none in this form itself is told so. */
function dropEmptyTools(body: Body, caller: JsonSource | undefined): void {
  const { tools } = body;
  if (tools !== null && tools !== undefined && !(Array.isArray(tools) && tools.length === 0)) return;
  if (tools === undefined && caller && !('tools' in caller.value)) return;
  delete body.tools;
  delete body.tool_choice;
  delete body.parallel_tool_calls;
}
