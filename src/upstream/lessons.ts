import type { HermesError } from '../contracts/errors.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { UpstreamCall, UpstreamFailure } from '../contracts/provider.ts';
import { failureOf } from './failure.ts';

/** Upstreams remembered at most; the one longest known is forgotten. */
const MOST = 1000;
const UNKNOWN_PARAMETER = /unsupported|not supported|unrecognized|unknown|unexpected|extra|not permitted|not allowed/i;

export type Quirks = Readonly<Record<string, unknown>>;

/**
 * What an upstream's 400 taught about itself: that it refuses `stream_options`, the other name of `max_tokens`, or the role
 * `developer`, or misses `reasoning_content`. These are hermes' to say, so the caller must not see the refusal: the call is made again, mended, and, if
 * that helped, so are all later ones to the same upstream: a caller's own mistake must teach nothing about it. The
 * configuration can say the same beforehand (docs/providers.md).
 */
export class Lessons {
  readonly #learned = new Map<string, Quirks>();
  /** Made once for what was learned: other things are known of a target, too. */
  readonly #taught = new WeakMap<UpstreamTarget, { learned: Quirks; target: UpstreamTarget }>();

  /** The target as it should be spoken to; `tried`: what this request's earlier calls were refused for. */
  apply(target: UpstreamTarget, tried: Quirks = {}): UpstreamTarget {
    const before = this.#learned.get(target.identity);
    if (Object.keys(tried).length > 0) return taught(target, { ...before, ...tried });
    if (before === undefined) return target;
    const known = this.#taught.get(target);
    if (known?.learned === before) return known.target;
    const made = taught(target, before);
    this.#taught.set(target, { learned: before, target: made });
    return made;
  }

  /** What makes the call worth making again: something to try that was not tried yet. */
  suggest({ identity }: UpstreamTarget, call: UpstreamCall, error: HermesError, tried: Quirks): Quirks | undefined {
    const failure = failureOf(error);
    const lesson = failure?.kind === 'invalid' ? lessonOf(failure, call) : undefined;
    const known: Quirks = { ...this.#learned.get(identity), ...tried };
    // Of the two names of a limit each is tried once.
    if (lesson === undefined || Object.keys(lesson).some((name) => name in tried || known[name] === lesson[name])) return undefined;
    return lesson;
  }

  /** What was tried has helped. */
  keep({ identity }: UpstreamTarget, tried: Quirks): void {
    if (Object.keys(tried).length === 0) return;
    const before = this.#learned.get(identity);
    this.#learned.delete(identity);
    this.#learned.set(identity, { ...before, ...tried });
    if (this.#learned.size <= MOST) return;
    const [oldest] = this.#learned.keys();
    if (oldest !== undefined) this.#learned.delete(oldest);
  }
}

/** Not a spread: the key is hidden from those, and stays with the target. */
function taught(target: UpstreamTarget, learned: Quirks): UpstreamTarget {
  return Object.create(target, { quirks: { value: { ...target.quirks, ...learned }, enumerable: true } }) as UpstreamTarget;
}

/** The parameter that was refused, where the upstream names one: its words may tell of others. */
function lessonOf({ param, message, code }: UpstreamFailure, call: UpstreamCall): Quirks | undefined {
  const words = `${code ?? ''} ${message}`;
  const body = typeof call.body === 'string' ? call.body : Buffer.from(call.body).toString('latin1');
  const sent = (member: string, value = ''): boolean => new RegExp(`"${member}"\\s*:\\s*${value}`).test(body);
  const meant = (params: RegExp, told: RegExp): boolean => (param ? params.test(param) : told.test(message));
  if (meant(/^stream_options(?:\.include_usage)?$/, /stream_options|include_usage/) && sent('stream_options')) return { stream_options: false };
  const other = /use ['"`]?max_completion_tokens/i.test(message) || code === 'unsupported_parameter';
  if (meant(/^max_tokens$/, /max_tokens/) && other && sent('max_tokens')) return { max_tokens_field: 'max_completion_tokens' };
  const unknown = UNKNOWN_PARAMETER.test(words);
  if (meant(/^max_completion_tokens$/, /max_completion_tokens/) && unknown && sent('max_completion_tokens')) return { max_tokens_field: 'max_tokens' };
  if (/reasoning_content/.test(`${param ?? ''} ${message}`) && /missing|required|must be/i.test(message)) return { empty_reasoning: true };
  const role = /developer/.test(message) && /role/i.test(`${param ?? ''} ${message}`);
  return meant(/^messages\b|role$/, /role/i) && role && sent('role', '"developer"') ? { developer_role: false } : undefined;
}
