import { createHash } from 'node:crypto';
import type { ChatMessage } from '../../wire/chat.ts';

export type IdMap = (id: string) => string;

const LONGEST = 64;
const NINE = /^[a-zA-Z0-9]{9}$/;

/**
 * Ids of tool calls that another maker minted, made fit on the outgoing copy: the same for call and result, never two into
 * one. Undefined: all of them fit. Mistral wants exactly nine letters or digits; nobody takes endless ones.
 */
export function createIdMap(messages: readonly ChatMessage[], nine: boolean): IdMap | undefined {
  const fits = (id: string): boolean => (nine ? NINE.test(id) : id.length <= LONGEST);
  const ids = new Set<string>();
  for (const message of messages) {
    if (message.tool_call_id) ids.add(message.tool_call_id);
    for (const call of message.tool_calls ?? []) if (call.id) ids.add(call.id);
  }
  const unfit = [...ids].filter((id) => !fits(id));
  if (unfit.length === 0) return undefined;
  const taken = new Set([...ids].filter(fits));
  const map = new Map<string, string>();
  for (const id of unfit) {
    let made = '';
    for (let salt = 0; made === '' || taken.has(made); salt++) made = mint(id, salt, nine);
    taken.add(made);
    map.set(id, made);
  }
  return (id) => map.get(id) ?? id;
}

function mint(id: string, salt: number, nine: boolean): string {
  const hash = createHash('sha256').update(`${salt}:${id}`).digest('hex');
  return nine ? hash.slice(0, 9) : `call_${hash.slice(0, 24)}`;
}
