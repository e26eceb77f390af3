import type { IncomingMessage } from 'node:http';
import { readCredential } from '../access/credential.ts';
import { allHeaders, remoteAddress } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';

/**
 * A wrong key is turned away before its body is read. Signatures cover the body, and a plugin that takes the place of `auth`
 * knows credentials of its own: those are left to the step. Throws a HermesError, or rejects with one.
 */
export function turnAwayWrongKey(
  gateway: Gateway,
  request: IncomingMessage,
  requestId: string,
  credential = readCredential(allHeaders(request)),
): Promise<unknown> | undefined {
  const { config, ownAuth } = gateway.generation();
  if (!ownAuth || credential?.kind === 'signature') return undefined;
  const { method = 'GET', url: path = '/' } = request;
  const proof = gateway.rooms.access.authenticate(config, credential, {
    method,
    path,
    body: undefined,
    remoteAddress: remoteAddress(request, config.server.trusted_proxies),
    requestId,
  });
  return proof instanceof Promise ? proof : undefined;
}
