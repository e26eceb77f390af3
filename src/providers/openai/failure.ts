import { type Exceeded, HermesError } from '../../contracts/errors.ts';
import type { FailureKind, UpstreamFailure } from '../../contracts/provider.ts';
import { isRecord, parseJsonBytes } from '../../wire/json.ts';
import { parseRetryAfter } from '../../wire/retry-after.ts';

interface Said {
  message: string;
  type: string;
  code: string | null;
  param: string | null;
}

/** The window is exceeded, in the words of OpenAI, vLLM, llama.cpp, Ollama, Mistral, DashScope, GLM and routers in between. */
const OVERFLOW =
  /context_length_exceeded|context[ _](?:window|length|size)|maximum (?:context|input|prompt|sequence)|max_model_len|too many (?:input )?tokens|(?:prompt|input|request|messages?)(?: \S+){0,3} (?:is|are) too (?:long|large)|reduce the length|(?:request|prompt|input)(?: tokens?)?(?: length)? too (?:long|large)|max_new_tokens\W{0,3} must be <=|token count.{0,60}supports? up to|exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:max|token limit|limit of \d+ tokens|available context)|range of input length|input length.{0,40}exceed|tokens?.{0,30}exceed|上下文.{0,10}(?:超|过长)|超(?:出|过).{0,12}(?:上下文|最大长度|token|长度)|(?:输入|prompt|token).{0,6}(?:过长|超长|超过)/i;
const QUOTA =
  /insufficient_quota|credit_balance_exhausted|billing_(?:hard_limit|not_active)|exceeded your current quota|insufficient[ _](?:balance|credits?|funds|quota)|(?:balance|credits?|quota) (?:is |are |has been |have been )?(?:exhausted|insufficient|used up|too low)|arrearage|overdue.{0,10}payment|余额不足|欠费|额度(?:不足|已用)/i;
const POLICY =
  /content_filter|content_policy|content[ -](?:management )?polic|usage polic|responsibleai|data_inspection_failed|inappropriate content|content exists risk|safety (?:system|policy)|moderation_blocked|sensitive (?:content|words?)|敏感|违规内容/i;
const MODEL =
  /model_not_found|model_not_exist|(?:model|deployment).{0,80}(?:does not exist|not found|not exist|not supported|unknown)|deploymentnotfound|模型不存在/i;
const KEY = /invalid_api_key|incorrect api key|invalid authentication|authentication[ _]error|unauthorized/i;

/** Gives the meaning of a refusal, or of an error event's payload inside a 200, however it is worded. */
export function toFailure(status: number, headers: Readonly<Record<string, string>>, bytes: Uint8Array): UpstreamFailure {
  const said = parseSaid(bytes);
  const meant = status >= 400 ? status : statusOf(said);
  const kind = kindOf(meant, said);
  return {
    kind,
    status: meant,
    message: said.message,
    type: said.type || (meant === 429 ? 'rate_limit_error' : meant >= 500 ? 'server_error' : 'invalid_request_error'),
    code: said.code,
    param: said.param,
    retryAfterMs: parseRetryAfter(headers),
    ...(kind === 'context_overflow' ? { exceeded: exceededIn(said.message) } : {}),
  };
}

/** An error that came inside a 200, with what the upstream said as its cause. */
export function toPayloadError(bytes: Uint8Array): HermesError {
  const cause = toFailure(200, {}, bytes);
  return new HermesError('upstream_error', 'The model answered with an error; try again.', { cause });
}

function kindOf(status: number, said: Said): FailureKind {
  const words = `${said.code ?? ''} ${said.type} ${said.message}`;
  if (status === 402 || ((status === 400 || status === 403 || status === 429) && QUOTA.test(words))) return 'quota';
  if (status === 429) return tooLargeByItself(said.message) ? 'context_overflow' : 'rate_limited';
  if (status === 408 || status === 504) return 'timeout';
  if (status === 409) return 'conflict';
  if (status === 401) return 'auth';
  if (status >= 500 || status < 400) return status >= 500 && status < 502 && OVERFLOW.test(words) ? 'context_overflow' : 'overloaded';
  if (POLICY.test(words)) return 'content_policy';
  if (status !== 404 && OVERFLOW.test(words)) return 'context_overflow';
  if (status === 403) return 'auth';
  if (status === 404 || ((status === 400 || status === 422) && MODEL.test(words) && !said.param?.startsWith('tool'))) return 'model_missing';
  return status === 400 && KEY.test(words) ? 'auth' : 'invalid';
}

/** A rate limit in tokens that this one request exceeds alone: waiting will never help. */
function tooLargeByItself(message: string): boolean {
  if (/request too large/i.test(message)) return true;
  return /token|tpm/i.test(message) && exceededIn(message) !== undefined;
}

/** A limit of tokens per minute; OpenAI's and vLLM's window, whose numbers may count the answer, too. */
const NUMBERS = [
  /limit:? *(?<maximum>[\d,]+).{0,60}?requested:? *(?<tokens>[\d,]+)/i,
  /maximum context length is (?<maximum>[\d,]+) tokens.{0,60}?(?:resulted in|requested) (?:about )?(?<tokens>[\d,]+)/is,
];

function exceededIn(message: string): Exceeded | undefined {
  for (const pattern of NUMBERS) {
    const { maximum, tokens } = pattern.exec(message)?.groups ?? {};
    const exceeded = { tokens: toNumber(tokens), maximum: toNumber(maximum) };
    if (exceeded.tokens > exceeded.maximum) return exceeded;
  }
  return undefined;
}

/** NaN for what is none: greater than nothing. */
function toNumber(digits: string | undefined): number {
  return Number(digits?.replaceAll(',', ''));
}

/** Inside a 200 the status must be read out of the words. */
function statusOf({ code, type, message }: Said): number {
  const numeric = Number(code);
  if (Number.isInteger(numeric) && numeric >= 400 && numeric < 600) return numeric;
  const words = `${code ?? ''} ${type}`;
  if (/rate_?limit|too_many|throttl|slow_down/i.test(words)) return 429;
  if (/overloaded|unavailable/i.test(words)) return 503;
  if (/timeout/i.test(words)) return 504;
  if (/quota|balance|billing/i.test(words) || QUOTA.test(message)) return 402;
  if (/auth|api_key|permission/i.test(words)) return 401;
  if (/invalid_request|bad_?request|context_length|content_filter|content_policy|data_inspection/i.test(words)) return 400;
  return 500;
}

/** `{error: {…}}` of OpenAI, `{error: "…"}`, the flat one of vLLM and DashScope, `{detail}` of FastAPI; of anything else nothing. */
function parseSaid(bytes: Uint8Array): Said {
  let body: unknown;
  try {
    body = parseJsonBytes(bytes);
  } catch {
    // A proxy's HTML page helps nobody and may name addresses.
    return { message: '', type: '', code: null, param: null };
  }
  // Google's compatible endpoint sends a list of one.
  const outer = Array.isArray(body) ? body[0] : body;
  if (!isRecord(outer)) return { message: '', type: '', code: null, param: null };
  const inner = isRecord(outer.error) ? outer.error : outer;
  const message = text(inner.message) ?? text(outer.error) ?? text(outer.msg) ?? text(outer.error_msg) ?? detail(outer.detail) ?? text(outer.message) ?? '';
  return {
    message,
    type: text(inner.type) ?? text(inner.status) ?? '',
    code: text(inner.code) ?? text(outer.error_code) ?? null,
    param: text(inner.param) ?? null,
  };
}

function detail(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map((one) => (isRecord(one) ? (text(one.msg) ?? '') : String(one))).join('; ');
  return isRecord(value) ? text(value.message) : text(value);
}

function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}
