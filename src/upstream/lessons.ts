import type { HermesError } from '../contracts/errors.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { UpstreamCall, UpstreamFailure } from '../contracts/provider.ts';
import { failureOf } from './failure.ts';

/** Upstreams remembered at most; the one longest known is forgotten. */
const MOST = 1000;
const UNKNOWN_PARAMETER = /unsupported|not supported|unrecognized|unknown|unexpected|extra|not permitted|not allowed/i;

type Quirks = Readonly<Record<string, unknown>>;

/**
 * What an upstream's 400 taught about itself: that it refuses `stream_options`, the other name of `max_tokens`, or the role
 * `developer`. Hermes adds these by itself, so the caller must not see the refusal: the call is made again without, and so
 * are all later ones to the same upstream. The configuration can say the same beforehand (docs/providers.md).
 */
export class Lessons {
  readonly #learned = new Map<string, Quirks>();

  /** The target as it should be spoken to. */
  apply(target: UpstreamTarget): UpstreamTarget {
    const learned = this.#learned.get(target.identity);
    if (learned === undefined) return target;
    // Not a spread: the key is hidden from those, and stays with the target.
    return Object.create(target, { quirks: { value: { ...target.quirks, ...learned }, enumerable: true } }) as UpstreamTarget;
  }

  /** True: there was something to learn, and the call is worth making again. */
  learn({ identity }: UpstreamTarget, call: UpstreamCall, error: HermesError): boolean {
    const failure = failureOf(error);
    const lesson = failure?.kind === 'invalid' ? lessonOf(failure, call) : undefined;
    if (lesson === undefined) return false;
    const before = this.#learned.get(identity);
    if (before && Object.entries(lesson).every(([name, value]) => before[name] === value)) return false;
    this.#learned.delete(identity);
    this.#learned.set(identity, { ...before, ...lesson });
    if (this.#learned.size > MOST) for (const oldest of this.#learned.keys()) return this.#learned.delete(oldest);
    return true;
  }
}

function lessonOf({ param, message, code }: UpstreamFailure, call: UpstreamCall): Quirks | undefined {
  const words = `${param ?? ''} ${code ?? ''} ${message}`;
  const body = typeof call.body === 'string' ? call.body : Buffer.from(call.body).toString('latin1');
  const sent = (member: string, value = ''): boolean => new RegExp(`"${member}"\\s*:\\s*${value}`).test(body);
  if (/stream_options|include_usage/.test(words) && sent('stream_options')) return { stream_options: false };
  if (sent('max_tokens') && (/use ['"`]?max_completion_tokens/i.test(message) || (param === 'max_tokens' && code === 'unsupported_parameter'))) {
    return { max_tokens_field: 'max_completion_tokens' };
  }
  if (sent('max_completion_tokens') && /max_completion_tokens/.test(words) && UNKNOWN_PARAMETER.test(words)) return { max_tokens_field: 'max_tokens' };
  return /developer/.test(words) && /role/i.test(words) && sent('role', '"developer"') ? { developer_role: false } : undefined;
}
