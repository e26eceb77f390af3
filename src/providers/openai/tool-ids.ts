import { createHash } from 'node:crypto';
import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatMessage } from '../../wire/chat.ts';
import { LONGEST_COMMON_ID, makerOf, toMaker } from '../../wire/maker.ts';
import { isOthersModel } from './family.ts';

export type IdMap = (id: string) => string;

/** Of ids that the vendor made itself, and of servers of other makers' models: vLLM's (`chatcmpl-tool-…`) have 46. */
const LONGEST_OWN = 64;
const NINE = /^[a-zA-Z0-9]{9}$/;

/**
 * Ids of tool calls that another maker minted, made fit on the outgoing copy: the same for call and result, never two into
 * one. Undefined: all of them fit. Mistral wants exactly nine letters or digits; nobody takes endless ones.
 */
export function createIdMap(messages: readonly ChatMessage[], target: UpstreamTarget): IdMap | undefined {
  const nine = target.quirks.tool_call_ids === 'nine';
  const taken = new Set<string>();
  const unfit = new Set<string>();
  const add = (id: string, longest: number): void => {
    const fits = nine ? NINE.test(id) : id.length <= longest;
    (fits ? taken : unfit).add(id);
  };
  const bound = isOthersModel(target) ? LONGEST_OWN : LONGEST_COMMON_ID;
  for (const message of messages) {
    if (message.tool_call_id) add(message.tool_call_id, bound);
    for (const { id } of message.tool_calls ?? []) if (id) add(id, id.length > bound && makerOf(message) === toMaker(target) ? LONGEST_OWN : bound);
  }
  for (const id of taken) unfit.delete(id);
  if (unfit.size === 0) return undefined;
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
