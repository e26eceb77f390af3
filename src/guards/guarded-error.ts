import type { HermesError } from '../contracts/errors.ts';
import type { Facts } from '../contracts/exchange.ts';
import { isRecord } from '../wire/json.ts';
import { guardText, type OutputGuard } from './guarded-answer.ts';
import { changeTexts } from './walk.ts';

/** An error whose words, an upstream's maybe, are looked at; the same one when they stay. Its cause is for the log and stays. */
export function guardError(error: HermesError, guard: OutputGuard): HermesError {
  if (guard.rules.empty && guard.vault.empty) return error;
  const message = guardText(error.message, false, guard);
  const [details, said] = [error.details, error.said].map((told) => changeTexts(told, (text, json) => guardText(text, json, guard)));
  if (message === error.message && details === error.details && said === error.said) return error;
  return error.reworded(message, { ...(isRecord(details) ? { details } : {}), ...(isRecord(said) ? { said } : {}) });
}

/** What is shown of the first choice beside a degraded answer. */
export function guardOriginal(facts: Facts, guard: OutputGuard, ofErrors: OutputGuard): void {
  const { original } = facts;
  if (original === undefined) return;
  const content = original.content && guardText(original.content, false, guard);
  const error = original.error && { ...original.error, message: guardText(original.error.message, false, ofErrors) };
  facts.original = { ...original, content, error };
}
