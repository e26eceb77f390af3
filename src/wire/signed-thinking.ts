/**
 * Signed thinking blocks that ended right before a chunk. The canonical form tells them with the finish reason
 * (`thinking_blocks`); a client that speaks Anthropic wants the signature while its block is open. They ride on the next
 * chunk as a symbol: never written to a wire, never stored.
 */
const SIGNED = Symbol('signed_thinking');

export function setSignedThinking(chunk: object, blocks: readonly Record<string, unknown>[]): void {
  Object.defineProperty(chunk, SIGNED, { value: blocks, enumerable: true, configurable: true });
}

export function signedThinkingOf(chunk: object): readonly Record<string, unknown>[] {
  const blocks: unknown = Reflect.get(chunk, SIGNED);
  return Array.isArray(blocks) ? blocks : [];
}
