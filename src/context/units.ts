import type { ChatMessage } from '../wire/chat.ts';

/** Messages that live or go together, by their indexes in the request. */
export interface Unit {
  indexes: number[];
  /** Stays whatever the budget: the system's words, the newest user message, and the exchange that the model is to answer. */
  pinned: boolean;
}

/** Oldest first. A tool call and its results are one unit, wherever the results stand. */
export function toUnits(messages: readonly ChatMessage[]): Unit[] {
  const units: Unit[] = [];
  const callers = new Map<string, Unit>();
  for (const [index, message] of messages.entries()) {
    const owner = message.role === 'tool' ? callers.get(message.tool_call_id ?? '') : undefined;
    if (owner) {
      owner.indexes.push(index);
      continue;
    }
    const unit: Unit = { indexes: [index], pinned: message.role === 'system' || message.role === 'developer' };
    units.push(unit);
    for (const call of message.tool_calls ?? []) callers.set(call.id, unit);
  }
  const newestUser = messages.findLastIndex((message) => message.role === 'user');
  for (const unit of units) if (unit.indexes.includes(newestUser)) unit.pinned = true;
  const last = units.at(-1);
  if (last) last.pinned = true;
  return units;
}
