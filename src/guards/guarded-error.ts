import { HermesError } from '../contracts/errors.ts';
import type { Facts } from '../contracts/exchange.ts';
import { isRecord } from '../wire/json.ts';
import { guardText, type OutputGuard } from './guarded-answer.ts';
import { changeTexts } from './walk.ts';

/** An error whose words, an upstream's maybe, are looked at; the same one when they stay. Its cause is for the log and stays. */
export function guardError(error: HermesError, guard: OutputGuard): HermesError {
  if (guard.rules.empty && guard.vault.empty) return error;
  const message = guardText(error.message, false, guard);
  const details = changeTexts(error.details, (text, json) => guardText(text, json, guard));
  if (message === error.message && details === error.details) return error;
  const { code, status, type, retryable, param, wireCode, headers, cause } = error;
  return new HermesError(code, message, { status, type, retryable, param, wireCode, headers, cause, ...(isRecord(details) ? { details } : {}) });
}

/** What is shown of the first choice beside a degraded answer. */
export function guardOriginal(facts: Facts, guard: OutputGuard, ofErrors: OutputGuard): void {
  const { original } = facts;
  if (original === undefined) return;
  const content = original.content && guardText(original.content, false, guard);
  const error = original.error && { ...original.error, message: guardText(original.error.message, false, ofErrors) };
  facts.original = { ...original, content, error };
}
