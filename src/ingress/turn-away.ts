import type { IncomingMessage } from 'node:http';
import { readCredential } from '../access/credential.ts';
import { allHeaders, remoteAddress } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';

/**
 * A wrong key is turned away before its body is read. Signatures cover the body, and a plugin that takes the place of `auth`
 * knows credentials of its own: those are left to the step. Throws a HermesError.
 */
export async function turnAwayWrongKey(gateway: Gateway, request: IncomingMessage, requestId: string, headers = allHeaders(request)): Promise<void> {
  const { config, ownAuth } = gateway.generation();
  const credential = readCredential(headers);
  if (!ownAuth || credential?.kind === 'signature') return;
  const { method = 'GET', url: path = '/' } = request;
  await gateway.rooms.access.authenticate(config, credential, {
    method,
    path,
    body: undefined,
    remoteAddress: remoteAddress(request, config.server.trusted_proxies),
    requestId,
  });
}
