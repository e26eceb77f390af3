/**
 * The upstream's own word for why it stopped (`refusal`, `pause_turn`), which the canonical finish reason blurs. It rides on
 * a canonical chunk or completion as a symbol: never written to a wire, never stored.
 */
const UPSTREAM_FINISH = Symbol('upstream_finish_reason');

export function setUpstreamFinish(carrier: object, word: string): void {
  Object.defineProperty(carrier, UPSTREAM_FINISH, { value: word, enumerable: false, configurable: true, writable: true });
}

export function upstreamFinishOf(carrier: object): string | undefined {
  const word: unknown = Reflect.get(carrier, UPSTREAM_FINISH);
  return typeof word === 'string' ? word : undefined;
}
