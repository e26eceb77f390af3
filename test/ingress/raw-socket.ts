import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEY } from '../app-kit.ts';

/** A client without a library: bytes out, text back. */
export interface RawSocket {
  readonly socket: Socket;
  readonly text: string;
  readonly closed: boolean;
  send(bytes: string | Uint8Array): void;
  /** Resolves when the condition holds or the other side has closed; rejects after `ms`. */
  until(condition: (text: string) => boolean, ms?: number): Promise<string>;
  /** The statuses that came, in order. */
  statuses(): number[];
}

export async function openSocket(port: number): Promise<RawSocket> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  let closed = false;
  socket.on('data', (data) => {
    text += data.toString('latin1');
  });
  socket
    .on('error', () => undefined)
    .on('close', () => {
      closed = true;
    });
  await new Promise((resolve) => socket.once('connect', resolve));
  return {
    socket,
    get text() {
      return text;
    },
    get closed() {
      return closed;
    },
    send: (bytes) => void socket.write(bytes),
    async until(condition, ms = 10_000) {
      for (const end = performance.now() + ms; !condition(text) && !closed; await sleep(5)) {
        if (performance.now() > end) throw new Error(`not within ${ms} ms; so far: ${text.slice(0, 200)}`);
      }
      return text;
    },
    statuses: () => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1])),
  };
}

/** Sends everything and reads until the other side closes, or has been silent for `quietMs`. */
export async function exchange(port: number, bytes: string | Uint8Array, quietMs = 400): Promise<RawSocket> {
  const raw = await openSocket(port);
  raw.send(bytes);
  for (let before = -1; !raw.closed && before !== raw.text.length; await sleep(quietMs)) before = raw.text.length === 0 ? -1 : raw.text.length;
  raw.socket.destroy();
  return raw;
}

export function head(lines: readonly string[] = [], start = 'POST /v1/chat/completions HTTP/1.1'): string {
  return [start, 'Host: hermes', `Authorization: Bearer ${KEY}`, 'Content-Type: application/json', ...lines, '', ''].join('\r\n');
}
export const hexSize = (text: string): string => Buffer.byteLength(text).toString(16);
