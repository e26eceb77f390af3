import { createHash, createHmac } from 'node:crypto';

export const SECRET = 'billing-secret-0123456789';

export interface ToSign {
  service?: string;
  secret?: string;
  at?: number;
  nonce?: string;
  method?: string;
  path?: string;
  body?: string;
  /** Instead of the digest of the body. */
  digest?: string;
}
/** The headers of a signed request, as SPEC 3 says. */
export function sign({
  service = 'billing',
  secret = SECRET,
  at = Date.now(),
  nonce = crypto.randomUUID(),
  method = 'POST',
  path = '/v1/chat/completions',
  body = '',
  digest,
}: ToSign) {
  const timestamp = String(Math.floor(at / 1000));
  const sha256 = digest ?? createHash('sha256').update(body).digest('hex');
  const hmac = createHmac('sha256', secret).update([timestamp, nonce, method, path, sha256].join('.')).digest('hex');
  return {
    'x-hermes-service': service,
    'x-hermes-timestamp': timestamp,
    'x-hermes-nonce': nonce,
    'x-hermes-signature': `v1=${hmac}`,
    ...(digest === 'UNSIGNED-PAYLOAD' ? { 'x-hermes-content-sha256': digest } : {}),
  };
}
