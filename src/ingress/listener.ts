import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../contracts/config.ts';
import { HermesError, toErrorBody } from '../contracts/errors.ts';

export interface ListenerHandlers {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}
export interface Listener {
  readonly port: number;
  readonly host: string;
  /** Open sockets. */
  readonly connections: number;
  /** Stops listening and closes idle connections; resolves when the last request is over. */
  close(options: CloseOptions): Promise<void>;
}
export interface CloseOptions {
  /** After it `cut` is called, to end what is left in good form; what does not end by that is closed a second later. */
  timeoutMs: number;
  cut(): void;
  /** Called when nobody is taken in any more. */
  closed(): void;
  /**
   * Connections are closed when they have been idle for so long. A client that sends its next request at the moment of their closing loses it;
   * whoever uses a connection more often is told by the next answer (`connection: close`), and loses none.
   */
  idleMs: number;
  /** It goes on listening for so long, for others that share the port and close before it. */
  lingerMs: number;
}

/** What a connection does. */
interface Use {
  /** Requests that are not answered. */
  open: number;
  /** performance.now() of its last answer's end, or of its beginning. */
  since: number;
  /** Bytes that had come by then: with more a request has begun. */
  bytes: number;
}

const MAX_HEADER_BYTES = 32 * 1024;
const MAX_HEADERS = 200;
/** A turn of the loop takes in one; a start, or a balancer that lost another instance, brings hundreds at once. */
const BACKLOG = 4096;
const SWEEP_MS = 50;
const CUT_GRACE_MS = 1000;
const SILENT_MS = 500;

/** A listener on node:http with limits against slow and oversized clients. Rejects when the address is taken. */
export async function listen(config: Config, handlers: ListenerHandlers): Promise<Listener> {
  const { host, port, header_timeout_ms, request_timeout_ms, keep_alive_timeout_ms } = config.server;
  const handle = inTurn(handlers.request);
  /** Requests that wait for the listener's end. */
  let held: [IncomingMessage, ServerResponse][] | undefined;
  const server = createServer(
    {
      keepAlive: true,
      noDelay: true,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: header_timeout_ms,
      requestTimeout: request_timeout_ms,
      keepAliveTimeout: keep_alive_timeout_ms,
      connectionsCheckingInterval: 1000,
      requireHostHeader: true,
    },
    (request, response) => (held ? held.push([request, response]) : handle(request, response)),
  );
  server.maxHeadersCount = MAX_HEADERS;
  const sockets = new Map<Socket, Use>();
  server.on('upgrade', (request, socket, head) => {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return serveWithout(server, request, socket, head);
    const use = sockets.get(request.socket);
    // Busy to its end, and with other things than answers.
    if (use !== undefined) use.open++;
    handlers.upgrade(request, socket, head);
  });
  server.on('clientError', refuseUnreadable);
  let lastAccepted = 0;
  server.on('connection', (socket) => {
    lastAccepted = performance.now();
    sockets.set(socket, { open: 0, since: lastAccepted, bytes: 0 });
    socket.once('close', () => sockets.delete(socket));
  });
  server.prependListener('request', (request, response) => {
    const use = sockets.get(request.socket);
    if (use === undefined) return;
    use.open++;
    response.once('close', () => {
      use.open--;
      use.since = performance.now();
      use.bytes = request.socket.bytesRead;
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    host: address.address,
    get connections() {
      return sockets.size;
    },
    async close(options) {
      if (options.lingerMs > 0) await new Promise((resolve) => setTimeout(resolve, options.lingerMs));
      const waiting: NonNullable<typeof held> = [];
      held = waiting;
      await quietMoment(() => lastAccepted);
      const drained = drain(server, sockets, options);
      held = undefined;
      for (const [request, response] of waiting) {
        response.setHeader('connection', 'close');
        handle(request, response);
      }
      await drained;
    },
  };
}

/**
 * Node hands a request over while the one before it on the connection is not answered yet, and its answer has no socket until then. If
 * that one is answered by `connection: close`, nothing that stands behind it may be processed (RFC 9112, 9.6).
 */
function inTurn(handle: ListenerHandlers['request']): ListenerHandlers['request'] {
  return (request, response) => {
    if (response.socket === null) response.once('socket', () => handle(request, response));
    // Its predecessor was answered at once, and that was the last word here.
    else if (response.socket.writableEnded) response.destroy();
    else handle(request, response);
  };
}

/** Offers of another protocol, and what belongs to them: they speak for one connection only. */
const UPGRADE_HEADERS = new Set(['upgrade', 'http2-settings', 'connection']);

/**
 * Java's HttpClient offers HTTP/2 (`Upgrade: h2c`) with every plain request. A server may go on in HTTP/1.1 (RFC 9110, 7.8), but Node
 * takes every offer away from its parser once websockets are served: the request is given to a new one, without the offer.
 */
function serveWithout(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i] ?? '';
    if (!UPGRADE_HEADERS.has(name.toLowerCase())) lines.push(`${name}: ${request.rawHeaders[i + 1]}`);
  }
  if (/\bclose\b/i.test(request.headers.connection ?? '')) lines.push('connection: close');
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

/** What cannot be parsed gets one plain answer; a socket that is gone gets none. */
function refuseUnreadable(error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const late = new HermesError('request_timeout', 'The request did not arrive in time; try again.');
  const [status, refusal] =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? [`${late.status} Request Timeout`, late]
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? ['431 Request Header Fields Too Large', new HermesError('invalid_request', 'The request headers are too large.')]
        : ['400 Bad Request', new HermesError('invalid_request', 'The request is not valid HTTP.')];
  const body = JSON.stringify(toErrorBody(refusal));
  socket.end(`HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);
}

/** So many turns in a row must have taken in nobody … */
const QUIET_TURNS = 3;
/** … and the last of them must have been as short as this: who knocks while a turn runs is not seen before the next. */
const SHORT_TURN_MS = 0.5;
/** For clients that knock without end. */
const MOST_MS = 1000;

/**
 * The kernel resets connections that are made but not yet taken in when a listener closes, and their requests are lost. A turn of the
 * loop takes one of them in (libuv since 1.45): once some turns in a row have found none there is none, however often somebody
 * knocks, and the listener is closed in the same turn. Requests are held meanwhile, for else a turn takes longer than somebody new needs to knock.
 */
async function quietMoment(lastAccepted: () => number): Promise<void> {
  const began = performance.now();
  for (let quiet = 0, known = lastAccepted(), turn = began; performance.now() - began < MOST_MS; ) {
    await new Promise<void>((resolve) => afterReading(resolve));
    const now = performance.now();
    quiet = lastAccepted() === known ? quiet + 1 : 0;
    if (quiet >= QUIET_TURNS && now - turn < SHORT_TURN_MS) return;
    known = lastAccepted();
    turn = now;
  }
}

/** Timers come before what has arrived is read: what is closed by a timer must be closed after that, or a late process resets what it has not looked at. */
function afterReading(act: () => void): void {
  setImmediate(act);
}

async function drain(server: Server, sockets: ReadonlyMap<Socket, Use>, { timeoutMs, cut, closed: told, idleMs }: CloseOptions): Promise<void> {
  // Not earlier: whoever is told to close comes again at once, and a listener that many knock at is never quiet.
  told();
  server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'));
  // Of http's own `close` the part that stops listening: the other part closes idle connections.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const closeIdle = (): void => {
    const before = performance.now() - idleMs;
    // One that has never said anything is about to speak, for a while.
    const silent = performance.now() - Math.max(idleMs, SILENT_MS);
    for (const [socket, { open, since, bytes }] of sockets)
      if (open === 0 && socket.bytesRead === bytes && since <= (bytes === 0 ? silent : before)) socket.destroy();
  };
  afterReading(closeIdle);
  const sweep = setInterval(() => afterReading(closeIdle), SWEEP_MS);
  let end: NodeJS.Timeout | undefined;
  const timer = setTimeout(() => {
    cut();
    end = setTimeout(() => {
      for (const socket of sockets.keys()) socket.destroy();
    }, CUT_GRACE_MS);
  }, timeoutMs);
  await closed;
  // And the part that ends http's own timer.
  server.close();
  for (const each of [sweep, timer, end]) clearTimeout(each);
}
