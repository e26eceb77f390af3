import { createHash } from 'node:crypto';

/**
 * A response's id carries its session, so that `previous_response_id` finds it on every instance. The session is the
 * caller's project's: a made-up id leads nowhere else.
 */
const WITH_SESSION = /^resp_([A-Za-z0-9_-]+)_[0-9a-f]{32}$/;

export function toResponseId(requestId: string, sessionId: string | undefined): string {
  const own = createHash('sha256').update(requestId).digest('hex').slice(0, 32);
  return sessionId === undefined ? `resp_${own}` : `resp_${Buffer.from(sessionId).toString('base64url')}_${own}`;
}

/** Undefined: not one that can be gone on with. */
export function sessionOf(responseId: string): string | undefined {
  const encoded = WITH_SESSION.exec(responseId)?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64url').toString('utf8');
}
