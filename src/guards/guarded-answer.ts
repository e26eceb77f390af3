import type { Answer } from '../contracts/exchange.ts';
import type { GuardConfig } from '../contracts/guards.ts';
import type { ChatCompletion } from '../wire/chat.ts';
import { isRecord, parseJsonBytes } from '../wire/json.ts';
import type { Excess } from './refusal.ts';
import type { Hit, TextRules } from './rules.ts';
import type { Size } from './size.ts';
import { TextWindow } from './text-window.ts';
import { Vault } from './vault.ts';
import { changeTexts } from './walk.ts';

/** How one answer is looked at. */
export interface OutputGuard {
  rules: TextRules;
  vault: Vault;
  size: Size | undefined;
  /** May throw: then nothing more is given. */
  onHit(hit: { guard: GuardConfig; kind: string; excess?: Excess }): void;
}

export const maskIn =
  (guard: OutputGuard) =>
  (hit: Hit, value: string): string | undefined =>
    hit.guard.action === 'flag' ? undefined : guard.vault.mask(hit.kind, value);

/** One text of an answer, whole: what is found goes, what was taken out of the question comes back. */
export function guardText(text: string, json: boolean, guard: OutputGuard): string {
  const { rules, vault, onHit } = guard;
  return new TextWindow({ rules: rules.empty ? undefined : rules, vault, json, onHit, replace: maskIn(guard) }).push(text, true);
}

/** Changes a whole answer's body. */
export function guardBody(answer: Answer, guard: OutputGuard): void {
  const { view } = answer;
  if (!isRecord(view) || !Array.isArray(view.choices)) return;
  const completion = view as ChatCompletion;
  const around = guardAround(completion, guard);
  let changed = around !== completion || !isRawClean(answer, guard);
  const choices = completion.choices.map((plain) => {
    const choice = guardAround(plain, guard);
    const message = guardMessage(choice.message, guard);
    const cut = guard.size?.take(message.content) ?? message.content;
    const next = cut === message.content ? message : { ...message, content: cut ?? null };
    changed ||= choice !== plain || next !== choice.message;
    if (next === choice.message) return choice;
    // Its tokens spell the text as it was.
    const { logprobs: _logprobs, ...rest } = choice;
    return { ...rest, message: next, logprobs: null, finish_reason: cut === message.content ? choice.finish_reason : 'length' };
  });
  if (changed) answer.body = { ...around, choices };
}

type Message = ChatCompletion['choices'][number]['message'];

/** What a model thought by itself stays with its placeholders. */
const THOUGHTS: ReadonlySet<string> = new Set(['thinking_blocks', 'reasoning_content', 'reasoning', 'reasoning_details']);

function guardMessage(message: Message, guard: OutputGuard): Message {
  let out = message;
  for (const [key, value] of Object.entries(message)) {
    const next = guardMember(value, guard, key);
    if (next !== value) out = { ...out, [key]: next };
  }
  return out;
}

/** A member of a message or a delta that comes whole. */
export function guardMember(value: unknown, guard: OutputGuard, key: string): unknown {
  if (guard.rules.empty && guard.vault.empty) return value;
  return THOUGHTS.has(key) ? guardThinking(value, guard, key) : changeTexts(value, (text, json) => guardText(text, json, guard), key);
}

/** What stands around messages and deltas, and is no words of anybody. Vendors put more there: sources, search results. */
const AROUND: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'usage', 'system_fingerprint', 'service_tier', 'obfuscation', 'provider'],
  ...['index', 'message', 'delta', 'logprobs', 'finish_reason', 'native_finish_reason', 'stop_reason'],
]);

/** Does an answer, an event or a choice hold more than that? */
export function hasMore(value: object): boolean {
  for (const key in value) if (!AROUND.has(key)) return true;
  return false;
}

/** An answer, an event or a choice with its other members changed; the same one when they stay. */
export function guardAround<T extends object>(value: T, guard: OutputGuard): T {
  if (!hasMore(value)) return value;
  let out = value;
  for (const [key, member] of Object.entries(value)) {
    if (AROUND.has(key)) continue;
    const next = guardMember(member, guard, key);
    if (next !== member) out = { ...out, [key]: next };
  }
  return out;
}

/** An upstream's own form says more than the canonical one (sources, for one), and may be relayed as it is. May it? */
export function isClean(said: unknown, guard: OutputGuard): boolean {
  const nothing: OutputGuard = { ...guard, vault: new Vault(), size: undefined };
  return changeTexts(said, (text, json) => guardText(text, json, nothing)) === said;
}

function isRawClean({ raw }: Answer, guard: OutputGuard): boolean {
  return raw === undefined || raw.form === 'openai-chat' || guard.rules.empty || isClean(parseJsonBytes(raw.bytes), guard);
}

/** Signed: placeholders in it stay, since only then its vendor takes it back. A signed block in which something is found goes. */
export function guardThinking(thoughts: unknown, { rules, onHit, vault }: OutputGuard, key = 'thinking_blocks'): unknown {
  if (rules.empty) return thoughts;
  const guard: OutputGuard = { rules, onHit, vault: vault.masking, size: undefined };
  return changeTexts(thoughts, (text, json) => guardText(text, json, guard), key);
}
