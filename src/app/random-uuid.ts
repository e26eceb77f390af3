import { randomFillSync } from 'node:crypto';

/** Random bytes are fetched for this many ids at a time. */
const IDS = 256;
const BYTES = 16;
const DASHES = [8, 13, 18, 23];
const DIGITS = Buffer.from('0123456789abcdef');

/**
 * Version 4 (RFC 9562) like crypto.randomUUID, but as one flat string: Node's is put together of twenty pieces, which stay
 * behind it for as long as nobody hashes it, and a request makes three of them.
 */
export function createRandomUuid(): () => string {
  const random = Buffer.alloc(IDS * BYTES);
  const text = Buffer.alloc(36);
  for (const at of DASHES) text[at] = 45;
  let next = random.length;
  return () => {
    if (next === random.length) {
      randomFillSync(random);
      next = 0;
    }
    random[next + 6] = ((random[next + 6] as number) & 0x0f) | 0x40;
    random[next + 8] = ((random[next + 8] as number) & 0x3f) | 0x80;
    for (let place = 0; place < 36; place++) {
      if (text[place] === 45) continue;
      const byte = random[next++] as number;
      text[place++] = DIGITS[byte >> 4] as number;
      text[place] = DIGITS[byte & 15] as number;
    }
    return text.toString('latin1');
  };
}
