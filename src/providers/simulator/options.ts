import type { FailureKind, UpstreamFailure } from '../../contracts/provider.ts';
import { type ChatRequest, messageText } from '../../wire/chat.ts';

/** How this one call is to behave. */
export interface Options {
  /** Refuse with this status. */
  fail?: number | undefined;
  /** Seconds that a refusal asks to be left alone. */
  retryAfter?: number | undefined;
  /** Fall silent after so many pieces. */
  stall?: number | undefined;
  /** Milliseconds before each piece. */
  slow?: number | undefined;
  /** Break off after so many pieces, without a finish reason. */
  cut?: number | undefined;
  /** Say this. */
  say?: string | undefined;
  /** Think this first. */
  think?: string | undefined;
  /** Call this tool. */
  tool?: { name: string; arguments: string } | undefined;
}

const HEAD = /\[\[\s*(fail|stall|slow|cut|say|think|tool)\b/iy;

interface Directive {
  start: number;
  end: number;
  key: string;
  value: string;
}

/** `[[key value]]`. By hand: an expression would look on to the end of the prompt from each of thousands that are never closed. */
function directivesIn(text: string): Directive[] {
  const found: Directive[] = [];
  for (let start = text.indexOf('[['); start >= 0; ) {
    HEAD.lastIndex = start;
    const head = HEAD.exec(text);
    const close = head ? text.indexOf(']]', HEAD.lastIndex) : start;
    if (close < 0) break;
    if (head) found.push({ start, end: close + 2, key: (head[1] ?? '').toLowerCase(), value: text.slice(start + head[0].length, close).trim() });
    start = text.indexOf('[[', head ? close + 2 : start + 1);
  }
  return found;
}

/** `demo?slow=200&fail=503` as the model's name, then `[[…]]` in the newest user message, which wins. */
export function parseOptions(request: ChatRequest): { name: string; options: Options } {
  const [name = 'simulator', query] = String(request.model ?? 'simulator').split('?', 2);
  const options: Options = {};
  for (const [key, value] of new URLSearchParams(query ?? '')) apply(options, key.toLowerCase(), value);
  for (const { key, value } of directivesIn(newestUserText(request))) apply(options, key, value);
  return { name, options };
}

export function withoutDirectives(text: string): string {
  let rest = '';
  let at = 0;
  for (const { start, end } of directivesIn(text)) {
    rest += text.slice(at, start);
    at = end;
  }
  return (rest + text.slice(at)).trim();
}

export function newestUserText(request: ChatRequest): string {
  const newest = request.messages.findLast((message) => message.role === 'user');
  return newest ? messageText(newest) : '';
}

function apply(options: Options, key: string, value: string): void {
  const [first = '', second = ''] = value.split(/\s+/, 2);
  const number = Number.parseInt(first, 10);
  switch (key) {
    case 'fail':
      options.fail = Number.isNaN(number) ? 500 : number;
      if (second) options.retryAfter = Number(second);
      break;
    case 'stall':
    case 'cut':
      options[key] = Number.isNaN(number) ? 0 : number;
      break;
    case 'slow':
      options.slow = Number.isNaN(number) ? 200 : number;
      break;
    case 'say':
    case 'think':
      options[key] = value;
      break;
    case 'tool': {
      const space = value.indexOf(' ');
      options.tool = space < 0 ? { name: value, arguments: '{}' } : { name: value.slice(0, space), arguments: value.slice(space + 1).trim() };
    }
  }
}

/** Thrown as it is: what an upstream's refusal would have become. */
export function toFailure(status: number, retryAfter: number | undefined): UpstreamFailure {
  const kinds: Record<number, FailureKind> = {
    401: 'auth',
    402: 'quota',
    403: 'auth',
    404: 'model_missing',
    408: 'timeout',
    409: 'conflict',
    429: 'rate_limited',
  };
  return {
    kind: kinds[status] ?? (status >= 500 ? 'overloaded' : 'invalid'),
    status,
    message: `The simulated model was told to fail with ${status}.`,
    type: status >= 500 ? 'server_error' : 'invalid_request_error',
    code: null,
    param: null,
    retryAfterMs: retryAfter === undefined || Number.isNaN(retryAfter) ? undefined : retryAfter * 1000,
  };
}
