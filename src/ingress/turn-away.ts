import type { IncomingMessage } from 'node:http';
import { readCredential } from '../access/credential.ts';
import type { Credential, Principal } from '../contracts/exchange.ts';
import { allHeaders, remoteAddress } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';

/**
 * A wrong key is turned away before its body is read. Signatures cover the body, and a plugin that takes the place of `auth`
 * knows credentials of its own: those are left to the step, and nobody is known yet. Throws a HermesError, or rejects with one.
 */
export function turnAwayWrongKey(
  gateway: Gateway,
  request: IncomingMessage,
  requestId: string,
  credential = readCredential(allHeaders(request)),
): Promise<Principal> | Principal | undefined {
  if (!gateway.generation().ownAuth || credential?.kind === 'signature') return undefined;
  return prove(gateway, request, requestId, credential, undefined);
}

/** Who signed a request that is refused for what is in it; undefined where the signature does not hold, or is not there. */
export async function signerOf(gateway: Gateway, request: IncomingMessage, requestId: string, body: Uint8Array): Promise<Principal | undefined> {
  const credential = readCredential(allHeaders(request));
  if (!gateway.generation().ownAuth || credential?.kind !== 'signature') return undefined;
  try {
    return await prove(gateway, request, requestId, credential, body);
  } catch {
    return undefined;
  }
}

function prove(
  gateway: Gateway,
  request: IncomingMessage,
  requestId: string,
  credential: Credential | undefined,
  body: Uint8Array | undefined,
): Promise<Principal> | Principal {
  const { config } = gateway.generation();
  const { method = 'GET', url: path = '/' } = request;
  return gateway.rooms.access.authenticate(config, credential, {
    method,
    path,
    body,
    remoteAddress: remoteAddress(request, config.server.trusted_proxies),
    requestId,
  });
}
