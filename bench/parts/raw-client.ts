import { connect, type Socket } from 'node:net';

/** What a client program is told, as JSON. */
export interface Plan {
  port: number;
  path: string;
  headers: Record<string, string>;
  body: string;
}
export interface Percentiles {
  count: number;
  /** Null where there was nothing to count. */
  p50: number | null;
  p90: number | null;
  p99: number | null;
  max: number | null;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

export function toBytes({ port, path, headers, body }: Plan): Buffer {
  const all = { host: `127.0.0.1:${port}`, ...headers, 'content-length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

/** Microseconds of the machine's monotonic clock: the same in every process. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

interface Waiting {
  done(status: number): void;
  part: ((bytes: Buffer) => void) | undefined;
}

/** One kept connection, one request at a time, as lean as can be: what a client costs itself must not hide tenths of a millisecond. */
export class Connection {
  readonly #port: number;
  #socket: Socket | undefined;
  #waiting: Waiting | undefined;
  #head: Buffer = Buffer.alloc(0);
  #inBody = false;
  /** Bytes of the body; -1 until the last chunk. */
  #left = 0;
  #status = 0;
  #closes = false;
  #tail: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.#port = port;
  }

  /** `done(status)`: 0 when the connection failed. `part(bytes)`: what came of the body. */
  send(bytes: Buffer, done: (status: number) => void, part?: (bytes: Buffer) => void): void {
    this.#waiting = { done, part };
    this.#head = Buffer.alloc(0);
    this.#inBody = false;
    this.#tail = Buffer.alloc(0);
    if (this.#socket === undefined || this.#socket.destroyed) this.#socket = this.#open();
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    socket.on('data', (data) => this.#heard(data));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket === socket && this.#waiting) this.#over(0);
    });
    return socket;
  }

  #heard(data: Buffer): void {
    if (this.#inBody) {
      this.#body(data);
      return;
    }
    this.#head = this.#head.length === 0 ? data : Buffer.concat([this.#head, data]);
    const end = this.#head.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#head.toString('latin1', 0, end).toLowerCase();
    const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
    this.#status = Number(head.slice(9, 12));
    this.#left = length === undefined ? -1 : Number(length);
    this.#closes = /\r\nconnection: *close/.test(head);
    this.#inBody = true;
    const rest = this.#head.subarray(end + HEAD_END.length);
    if (rest.length > 0 || this.#left === 0) this.#body(rest);
  }

  #body(data: Buffer): void {
    if (data.length > 0) this.#waiting?.part?.(data);
    if (this.#left >= 0) {
      this.#left -= data.length;
      if (this.#left <= 0) this.#over(this.#status);
      return;
    }
    // An event's text never has a carriage return: this is the end of a chunked body and nothing else.
    const tail = data.length >= LAST_CHUNK.length ? data : Buffer.concat([this.#tail, data]);
    this.#tail = tail.subarray(-LAST_CHUNK.length);
    if (this.#tail.equals(LAST_CHUNK)) this.#over(this.#status);
  }

  #over(status: number): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (this.#closes) this.#socket?.destroy();
    waiting?.done(status);
  }
}

/** In the unit that was given. */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number | null => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

const STAMP = /t=(\d+) /g;
/** How old the events in these bytes are, in milliseconds. */
export function agesIn(bytes: Buffer, now = microseconds()): number[] {
  return [...bytes.toString('latin1').matchAll(STAMP)].map(([, at]) => (now - Number(at)) / 1000);
}
