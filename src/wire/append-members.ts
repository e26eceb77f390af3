import { stringifyJson } from './json.ts';

const CLOSE_BRACE = 125;

/** A JSON object's bytes with more members behind its own, which stay as they came. For an object that has members, but none of these names. */
export function appendMembers(bytes: Uint8Array, members: Readonly<Record<string, unknown>>): Buffer {
  const end = bytes.lastIndexOf(CLOSE_BRACE);
  const text = `,${stringifyJson(members).slice(1, -1)}`;
  const whole = Buffer.allocUnsafe(bytes.length + Buffer.byteLength(text));
  whole.set(bytes.subarray(0, end));
  const at = end + whole.write(text, end);
  whole.set(bytes.subarray(end), at);
  return whole;
}
