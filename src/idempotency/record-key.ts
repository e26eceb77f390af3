import type { Exchange } from '../contracts/exchange.ts';
import { canonicalJson, sha256 } from '../wire/canonical.ts';

/**
 * The name under which a request is kept. It begins with the caller's identity, readable, and ends in a hash of identity and
 * id together: no id can be worded so that it falls under another caller. Letters, digits, dots and dashes only: fit for
 * every store, prefixes included.
 */
export function toRecordKey(owner: string, id: string): string {
  return `${owner.replace(/[^A-Za-z0-9.-]/g, '-').slice(0, 64)}.${Buffer.from(sha256(JSON.stringify([owner, id])), 'base64url').toString('hex')}`;
}

/** What makes two requests the same one: the canonical body and our fields, without what only says how to deliver it. SPEC 12, "same body". */
export function toFingerprint(request: Exchange['request'], ask: Exchange['ask']): string {
  const { stream: _stream, stream_options: _options, ...body } = request;
  const { requestId: _id, timeoutMs: _timeout, sessionId: _session, sessionIsNew: _isNew, ...fields } = ask;
  const sessionId = askedSession(ask);
  return sha256(canonicalJson([body, { ...fields, ...(sessionId === undefined ? {} : { sessionId }) }]));
}

/** The session that the caller has named: what hermes names is another one at each try. */
export function askedSession({ sessionId, sessionIsNew }: Exchange['ask']): string | undefined {
  return sessionIsNew ? undefined : sessionId;
}

/** Whose records these are. */
export function ownerOf(exchange: Exchange): string {
  return exchange.principal?.id ?? '';
}
