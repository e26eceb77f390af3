import type { TokenCounts } from '../contracts/exchange.ts';
import { type ChatMessage, messageText } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';

/** A request as it was recorded, as far as it was. */
export interface RecordedRequest {
  /** `x-request-id`. */
  id: string | undefined;
  messages: ChatMessage[];
  /** Unix milliseconds. */
  at: number | undefined;
  /** What decided it then; undefined for a question alone. */
  route: string | undefined;
  /** The model that served; before a fallback, if one did. */
  model: string | undefined;
  costRule: string | undefined;
  service: string | undefined;
  project: string | undefined;
  userLevel: string | undefined;
  priority: string | undefined;
  session: string | undefined;
  calls: RecordedCall[];
}
export interface RecordedCall {
  model: string;
  startedAt: number;
  answered: boolean;
  tokens: TokenCounts;
}
export interface Recorded {
  requests: RecordedRequest[];
  /** Traces that cannot be decided again: `trace.capture_content` was off. */
  withoutContent: number;
}

/**
 * Recorded traffic in whatever form it is kept: a trace export (NDJSON, or a page of `/admin/traces`), the messages of a
 * session export, or a text with one question a line (`#` begins a comment).
 */
export function parseRecorded(text: string): Recorded {
  const recorded: Recorded = { requests: [], withoutContent: 0 };
  for (const item of itemsOf(text)) {
    if (typeof item === 'string') recorded.requests.push(questionOf(item));
    else if (isRecord(item)) addRecord(item, recorded);
  }
  return recorded;
}

export function questionOf(text: string, more: Partial<RecordedRequest> = {}): RecordedRequest {
  const nothing = { id: undefined, at: undefined, route: undefined, model: undefined, costRule: undefined, service: undefined, project: undefined };
  return {
    ...nothing,
    userLevel: undefined,
    priority: undefined,
    session: undefined,
    calls: [],
    ...more,
    messages: [{ role: 'user', content: text }],
  };
}

/** JSON as a whole, JSON by lines, else lines. */
function itemsOf(text: string): unknown[] {
  const whole = parseJson(text);
  if (Array.isArray(whole)) return whole;
  if (isRecord(whole)) return Array.isArray(whole.data) ? whole.data : [whole];
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => (/^[{"]/.test(line) ? (parseJson(line) ?? line) : line));
}
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function addRecord(item: Record<string, unknown>, recorded: Recorded): void {
  if (typeof item.role === 'string') {
    const content = item.role === 'user' ? messageText(item as object as ChatMessage) : '';
    if (content !== '') recorded.requests.push(questionOf(content));
    return;
  }
  const question = [item.message, item.question, item.text].find((value) => typeof value === 'string');
  if (typeof question === 'string') recorded.requests.push(questionOf(question));
  else if (Array.isArray(item.calls) || Array.isArray(item.spans) || item.content !== undefined) addTrace(item, recorded);
}

function addTrace(trace: Record<string, unknown>, recorded: Recorded): void {
  const content = isRecord(trace.content) && trace.content.hashed !== true ? trace.content.request : undefined;
  if (!Array.isArray(content)) {
    // What was refused before it was read, or passed through, has no messages to begin with.
    if (text(trace.route) !== undefined) recorded.withoutContent++;
    return;
  }
  const at = Date.parse(text(trace.started_at) ?? '');
  recorded.requests.push({
    id: text(trace.id),
    messages: content.filter(isRecord) as object[] as ChatMessage[],
    at: Number.isNaN(at) ? undefined : at,
    route: text(trace.route),
    model: text(trace.degraded_from) ?? text(trace.model),
    costRule: text(trace.cost_rule),
    service: text(trace.service),
    project: text(trace.project),
    userLevel: text(trace.user_level),
    priority: text(trace.priority),
    session: text(trace.session_id),
    calls: (Array.isArray(trace.calls) ? trace.calls : []).filter(isRecord).map(toCall),
  });
}

function toCall(call: Record<string, unknown>): RecordedCall {
  const tokens = isRecord(call.tokens) ? call.tokens : {};
  const count = (name: string) => (typeof tokens[name] === 'number' ? tokens[name] : 0);
  return {
    model: text(call.model) ?? '',
    startedAt: Date.parse(text(call.started_at) ?? '') || 0,
    answered: call.outcome === 'ok',
    tokens: { input: count('input'), cached: count('cached'), cacheWrite: count('cacheWrite'), output: count('output'), reasoning: count('reasoning') },
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
