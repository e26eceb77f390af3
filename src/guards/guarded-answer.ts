import type { Answer } from '../contracts/exchange.ts';
import type { GuardConfig } from '../contracts/guards.ts';
import type { ChatCompletion } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import type { Hit, TextRules } from './rules.ts';
import type { Size } from './size.ts';
import { TextWindow } from './text-window.ts';
import type { Vault } from './vault.ts';
import { changeTexts } from './walk.ts';

/** How one answer is looked at. */
export interface OutputGuard {
  rules: TextRules;
  vault: Vault;
  size: Size | undefined;
  /** May throw: then nothing more is given. */
  onHit(hit: { guard: GuardConfig; kind: string }): void;
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

/** Changes a whole answer's body, and what is shown of the first choice beside a degraded one. */
export function guardBody(answer: Answer, guard: OutputGuard): void {
  const { view, facts } = answer;
  if (facts.original?.content) facts.original = { ...facts.original, content: guardText(facts.original.content, false, guard) };
  if (!isRecord(view) || !Array.isArray(view.choices)) return;
  const completion = view as ChatCompletion;
  let changed = false;
  const choices = completion.choices.map((choice) => {
    const message = guardMessage(choice.message, guard);
    const cut = guard.size?.take(message.content) ?? message.content;
    const next = cut === message.content ? message : { ...message, content: cut ?? null };
    if (next === choice.message) return choice;
    changed = true;
    // Its tokens spell the text as it was.
    const { logprobs: _logprobs, ...rest } = choice;
    return { ...rest, message: next, logprobs: null, finish_reason: cut === message.content ? choice.finish_reason : 'length' };
  });
  if (changed) answer.body = { ...completion, choices };
}

type Message = ChatCompletion['choices'][number]['message'];

/** What a model thought by itself stays with its placeholders. */
const THOUGHTS = ['thinking_blocks', 'reasoning_content', 'reasoning', 'reasoning_details'] as const;

function guardMessage(message: Message, guard: OutputGuard): Message {
  let out = message;
  for (const [key, value] of Object.entries(message)) {
    const next = THOUGHTS.some((name) => name === key)
      ? guardThinking(value, guard, key)
      : changeTexts(value, (text, json) => guardText(text, json, guard), key);
    if (next !== value) out = { ...out, [key]: next };
  }
  return out;
}

/** Signed: placeholders in it stay, since only then its vendor takes it back. A signed block in which something is found goes. */
export function guardThinking(thoughts: unknown, { rules, onHit, vault }: OutputGuard, key = 'thinking_blocks'): unknown {
  if (rules.empty) return thoughts;
  const guard: OutputGuard = { rules, onHit, vault: vault.masking, size: undefined };
  return changeTexts(thoughts, (text, json) => guardText(text, json, guard), key);
}
