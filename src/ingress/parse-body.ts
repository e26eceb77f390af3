import { HermesError } from '../contracts/errors.ts';
import { parseJsonBytes } from '../wire/json.ts';
import { endOfString } from '../wire/splice-json.ts';

const QUOTE = 34;

/** JSON of at most `maxDepth` levels. Throws a HermesError (400). */
export function parseBody(bytes: Buffer, maxDepth: number): unknown {
  if (bytes.length === 0) throw new HermesError('invalid_json', 'The request body is empty; send a JSON object with `messages`.');
  if (isDeeper(bytes, maxDepth)) throw new HermesError('invalid_json', `The request body is nested more than ${maxDepth} levels deep.`);
  try {
    return parseJsonBytes(bytes);
  } catch (cause) {
    const why = cause instanceof SyntaxError ? `: ${cause.message.replace(/, ".*$/s, '').slice(0, 120)}` : '';
    throw new HermesError('invalid_json', `The request body is not valid JSON${why}.`, { cause });
  }
}

/** Deep nesting costs stack in everything that walks it afterwards; so it is counted before it is parsed. */
function isDeeper(bytes: Buffer, maxDepth: number): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) at = endOfString(bytes, at) - 1;
    else if ((byte | 32) === 123) {
      // 0x5b [ and 0x7b { differ in bit 5 alone, as do their closings
      if (++depth > maxDepth) return true;
    } else if ((byte | 32) === 125) depth--;
  }
  return false;
}
