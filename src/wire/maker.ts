import type { ChatMessage } from './chat.ts';

/**
 * Who made a message: its reasoning goes back to that vendor alone (`reasoning` of a model decides otherwise), and long ids
 * of its calls go back to that vendor unchanged. Stored messages say it in a member; a conversation in memory carries it as a symbol, which no wire ever sees.
 */
export const STORED_MAKER = 'reasoning_by';
const MAKER = Symbol('maker');
/** Of a tool call: what every vendor takes (OpenAI's bound). */
export const LONGEST_COMMON_ID = 40;
const REASONING = ['reasoning_content', 'reasoning', 'reasoning_details', 'thinking_blocks'] as const;

export function makerOf(message: ChatMessage): string | undefined {
  const maker: unknown = Reflect.get(message, MAKER);
  return typeof maker === 'string' ? maker : undefined;
}

/** Of a message that this vendor has just made. */
export function madeBy(message: ChatMessage, maker: string | undefined): ChatMessage {
  return maker === undefined ? message : Object.defineProperty({ ...message }, MAKER, { value: maker, enumerable: true });
}

/** May its reasoning go to this vendor? What nobody knows the maker of may. */
export function mayGoTo(message: ChatMessage, maker: string): boolean {
  const own = makerOf(message);
  return own === undefined || own === maker;
}

/** For the stores; only a message that has reasoning in it needs it, or calls whose ids another vendor may find too long. */
export function withStoredMaker(message: ChatMessage, maker = makerOf(message)): ChatMessage {
  if (maker === undefined || message.role !== 'assistant') return message;
  const needs = REASONING.some((name) => name in message) || message.tool_calls?.some(({ id }) => id?.length > LONGEST_COMMON_ID);
  return needs ? { ...message, [STORED_MAKER]: maker } : message;
}

/** Out of the stores. */
export function withMaker(message: ChatMessage): ChatMessage {
  if (!(STORED_MAKER in message)) return message;
  const { [STORED_MAKER]: maker, ...rest } = message;
  return typeof maker === 'string' ? madeBy(rest, maker) : rest;
}

/** A vendor: what it serves at one address understands its own reasoning. No address is told. */
export function toMaker(target: Vendor): string {
  const known = makers.get(target);
  if (known !== undefined) return known;
  const maker = nameOf(target);
  makers.set(target, maker);
  return maker;
}
interface Vendor {
  provider: string;
  apiBase: string;
}
const makers = new WeakMap<Vendor, string>();

function nameOf({ provider, apiBase }: Vendor): string {
  // FNV-1a: a name to compare, not a secret.
  let hash = 0x811c9dc5;
  for (let at = 0; at < apiBase.length; at++) hash = Math.imul(hash ^ apiBase.charCodeAt(at), 0x01000193);
  return `${provider}-${(hash >>> 0).toString(16)}`;
}
