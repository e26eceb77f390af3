// Tab, visible ASCII and Latin-1: what a header value may hold (RFC 9110, 5.5).
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/g;

/** A header value as its UTF-8 bytes, as callers send theirs; ids may be in any script. */
export function toHeaderText(value: string): string {
  if (SENDABLE.test(value)) return value;
  return Buffer.from(value.replaceAll(CONTROL, ' '), 'utf8').toString('latin1');
}

/** Makes headers such that Node will not refuse them: plugins and upstreams say what they like. */
export function toSendable(headers: Record<string, string>): void {
  for (const name in headers) {
    const value = String(headers[name]);
    if (!SENDABLE.test(value)) headers[name] = toHeaderText(value);
  }
}

/** Of this exchange, and of the request as its caller calls it; every answer has both. */
export function idHeaders(traceId: string, requestId: string): Record<string, string> {
  return { 'x-request-id': traceId, 'x-hermes-request-id': toHeaderText(requestId) };
}
