import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { HermesError } from '../contracts/errors.ts';
import { createInStep } from '../wire/in-step.ts';

const DECODERS = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) } as const;

/** Requests whose bodies are whole. */
const inStep = createInStep();

function tooLarge(limit: number): HermesError {
  return new HermesError('request_too_large', `The request body is larger than ${limit} bytes; send less, or raise server.body_limit.`, {
    headers: { connection: 'close' },
  });
}

/** The whole body, decoded, at most `limit` bytes either way. Throws a HermesError (413, 415, 400). */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'identity' && encoding !== '' && !Object.hasOwn(DECODERS, encoding)) {
    throw new HermesError('unsupported_media_type', `content-encoding "${encoding.slice(0, 32)}" is not understood; send gzip, deflate, br or none.`);
  }
  const length = Number(request.headers['content-length']);
  if (length > limit) throw tooLarge(limit);
  const bytes = await receive(request, limit);
  if (encoding === 'identity' || encoding === '') return bytes;
  try {
    return await DECODERS[encoding as keyof typeof DECODERS](bytes, { maxOutputLength: limit });
  } catch (cause) {
    if (cause instanceof RangeError) throw tooLarge(limit);
    throw new HermesError('invalid_request', `The request body is not valid ${encoding}.`, { cause });
  }
}

function receive(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // A client that left while something else was awaited: its `close` will not come again.
    if (request.destroyed && !request.complete) return reject(new HermesError('client_closed', 'The client closed the connection.'));
    const parts: Buffer[] = [];
    let size = 0;
    const stop = (error: HermesError): void => {
      request.off('data', take).off('end', end).off('error', fail).off('close', close);
      // The rest is read away for a moment: a client that is still writing sees the answer rather than a reset.
      request.on('error', () => undefined).resume();
      reject(error);
    };
    const take = (part: Buffer): void => {
      size += part.length;
      if (size > limit) stop(tooLarge(limit));
      else parts.push(part);
    };
    const end = (): void => inStep(() => resolve(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)));
    const fail = (cause: Error): void => stop(new HermesError('client_closed', 'The client closed the connection.', { cause }));
    const close = (): void => {
      if (!request.complete) stop(new HermesError('client_closed', 'The client closed the connection.'));
    };
    request.on('data', take).on('end', end).on('error', fail).on('close', close);
  });
}
