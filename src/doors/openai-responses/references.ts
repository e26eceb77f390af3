import type { ChatMessage } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';

/** Where the message stands that an item of an earlier answer is part of, until the store has been asked for it. */
const FIELD = 'item_reference';
/** Ids of items are made of their response's; see `itemIds`. */
const OF_A_RESPONSE = /^(?:msg|fc|ctc|rs)_((?:[A-Za-z0-9_-]+_)?[0-9a-f]{32})_\d+$/;

export function toReference(id: string): ChatMessage {
  return { role: 'assistant', content: null, [FIELD]: id };
}

export function referenceOf(message: ChatMessage): string | undefined {
  const id = message[FIELD];
  return typeof id === 'string' ? id : undefined;
}

/** The response that an item belongs to; undefined: hermes has given no item of this id. */
export function responseOf(itemId: string): string | undefined {
  const own = OF_A_RESPONSE.exec(itemId)?.[1];
  return own === undefined ? undefined : `resp_${own}`;
}

export function outputById(response: unknown): ReadonlyMap<string, unknown> {
  const output = isRecord(response) && Array.isArray(response.output) ? response.output.filter(isRecord) : [];
  return new Map(output.map((item) => [String(item.id), item]));
}
