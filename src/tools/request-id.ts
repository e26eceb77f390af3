import { createHash } from 'node:crypto';

/** RFC 9562, section 5.5: a name-based UUID in a namespace of our own (made once at random). */
const NAMESPACE = Buffer.from('5f1b6a2e3f0c4d7c9a4e2b8d61c0f7a3', 'hex');

/**
 * The id of one business action: the same for every retry of whatever kind, another one for the next occurrence of the same
 * call. The owner is in it: two callers' requests never share an action by choosing the same request id.
 */
export function toToolRequestId(owner: string, requestId: string, tool: string, canonicalParams: string, occurrence: number): string {
  const name = JSON.stringify([owner, requestId, tool, canonicalParams, occurrence]);
  const hash = createHash('sha1').update(NAMESPACE).update(name).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}
