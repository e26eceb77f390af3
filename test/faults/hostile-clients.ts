import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { KEY, type RunningApp, user } from '../app-kit.ts';
import { openSocket } from '../ingress/raw-socket.ts';
import type { Random } from './random.ts';

const BOMB_BYTES = 96 * 2 ** 20;
const GROWTH_BYTES = 400 * 2 ** 20;
const PACKERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => deflateSync(bytes, { level: 1 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
};

/** Small bodies that unpack to much more than is taken in, broken ones, and packings within packings. */
export async function sendBombs(app: RunningApp, count: number, random: Random): Promise<string[]> {
  const wrong: string[] = [];
  const inside = Buffer.from(JSON.stringify({ messages: user(' '.repeat(BOMB_BYTES)) }));
  const bombs = new Map<string, Buffer>();
  const bomb = (packing: string): Buffer => {
    const made = bombs.get(packing) ?? (PACKERS[packing] as (bytes: Buffer) => Buffer)(inside);
    bombs.set(packing, made);
    return made;
  };
  for (const packing of Object.keys(PACKERS)) bomb(packing);
  const before = process.memoryUsage.rss();
  let most = before;
  const send = async (packing: string, body: Buffer, allowed: number[]): Promise<void> => {
    const response = await fetch(`${app.base}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-encoding': packing },
      body: new Uint8Array(body),
    }).catch(() => undefined);
    await response?.arrayBuffer().catch(() => undefined);
    most = Math.max(most, process.memoryUsage.rss());
    // Refused before it has arrived, the connection may be gone before the answer is read.
    if (response && !allowed.includes(response.status)) wrong.push(`${packing} of ${body.length} bytes: ${response.status}`);
  };
  for (let i = 0; i < count; i++) {
    const packing = random.pick(Object.keys(PACKERS));
    const how = random.below(4);
    if (how === 0) await send(`${packing}, gzip`, gzipSync(bomb(packing)), [400, 413, 415]);
    else if (how === 1) await send(packing, bomb(packing).subarray(0, 1 + random.below(2000)), [400, 413]);
    else await Promise.all([send(packing, bomb(packing), [413]), send(packing, bomb(packing), [413])]);
    if ((await app.chat({ messages: user('beside a bomb') })).status !== 200) wrong.push('an honest request failed beside a bomb');
  }
  if (most - before > GROWTH_BYTES) wrong.push(`memory grew by ${Math.round((most - before) / 2 ** 20)} MB`);
  return wrong;
}

/** Sockets that never finish their head or their body, a byte now and then; honest clients meanwhile. The app's time limits are to be short. */
export async function holdSlowly(app: RunningApp, count: number, random: Random, limitMs: number): Promise<string[]> {
  const wrong: string[] = [];
  const sockets = await Promise.all(Array.from({ length: count }, () => openSocket(app.app.port)));
  const heads = [
    'POST /v1/chat HTTP/1.1\r\nHost: h\r\nX-Slow: ',
    'GET',
    '\r\n',
    `POST /v1/chat HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: 9000\r\n\r\n{`,
  ];
  for (const socket of sockets) socket.send(random.pick(heads));
  const drip = setInterval(() => {
    for (const socket of sockets) if (!socket.closed && random.below(3) === 0) socket.send('a');
  }, 100);
  const until = performance.now() + limitMs;
  while (performance.now() < until && sockets.some(({ closed }) => !closed)) {
    if ((await app.chat({ messages: user('beside slow ones') })).status !== 200) wrong.push('an honest request failed beside slow ones');
    await sleep(50);
  }
  clearInterval(drip);
  const held = sockets.filter(({ closed }) => !closed).length;
  if (held > 0) wrong.push(`${held} of ${count} slow sockets are still held after ${limitMs} ms`);
  for (const { socket } of sockets) socket.destroy();
  return wrong;
}
