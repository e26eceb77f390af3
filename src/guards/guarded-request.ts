import type { ChatRequest } from '../wire/chat.ts';
import type { Hit, TextRules } from './rules.ts';
import { TextWindow } from './text-window.ts';
import { placeholdersIn, Vault } from './vault.ts';
import { changeTexts } from './walk.ts';

export interface GuardedRequest {
  /** The same object when nothing was taken out. */
  request: ChatRequest;
  vault: Vault;
}

/** Looks at everything that goes to the model: messages, tools, and whatever else stands in the body. `onHit` may throw. */
export function guardRequest(request: ChatRequest, rules: TextRules, onHit: (hit: Hit) => void): GuardedRequest {
  let found = false;
  // One a request: what masks the answer notes values in it, which no other request may have or count on from.
  const none = new Vault();
  // Looked at first, changed only where there is something: names that the caller wrote by itself must be known before.
  walk(request, (text, json) => {
    const heard = (hit: Hit): void => {
      onHit(hit);
      found ||= hit.guard.action === 'redact';
    };
    new TextWindow({ rules, vault: none, json, onHit: heard, replace: () => undefined }).push(text, true);
    return text;
  });
  if (!found) return { request, vault: none };
  // What the model said itself may hold names of ours: they mean the same values again.
  const taken: string[] = [];
  const note = (text: string): string => {
    if (text.includes('⟦')) taken.push(...placeholdersIn(text));
    return text;
  };
  changeTexts(
    request.messages.filter(({ role }) => role !== 'assistant'),
    note,
  );
  const vault = new Vault(taken);
  const replace = (hit: Hit, value: string): string | undefined => (hit.guard.action === 'redact' ? vault.keep(hit.kind, value) : undefined);
  const changed = walk(request, (text, json) => new TextWindow({ rules, vault: none, json, onHit: () => undefined, replace }).push(text, true));
  return { request: changed, vault };
}

/** The request's own numbers (seed, limits) are no words. */
function walk(request: ChatRequest, change: (text: string, json: boolean) => string): ChatRequest {
  let out: ChatRequest = request;
  for (const [key, value] of Object.entries(request)) {
    if (typeof value === 'number') continue;
    const next = changeTexts(value, change, key);
    if (next !== value) out = { ...out, [key]: next };
  }
  return out;
}
