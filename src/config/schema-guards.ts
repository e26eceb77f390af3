import { RE2JS } from 're2js';
import { z } from 'zod';
import type { RedactRule } from '../contracts/guards.ts';
import { address, bytes, decimal, environmentName, flag, id, milliseconds, seconds, text, whole } from './values.ts';

export const cache = z
  .strictObject({
    enabled: flag().default(true).describe('Off without taking the block out.'),
    ttl_seconds: seconds(1).default(3600).describe('Seconds that an answer is given again.'),
    max_bytes: bytes()
      .default(64 * 1024 ** 2)
      .describe('Most memory of this process for kept answers, bytes or like 64mb. With Redis as the hot store they are shared there as well.'),
    semantic: z
      .strictObject({
        enabled: flag().default(false).describe('Also answer a question that only says the same in other words.'),
        threshold: decimal(0, 1).default(0.95).describe('Nearness (cosine, 0 to 1) from which two questions are the same.'),
      })
      .prefault({})
      .describe('By meaning, with the `embedding` block; only behind the same principal, system prompt and conversation.'),
  })
  .optional()
  .describe(
    'Answers that are given again instead of being paid for twice: at temperature 0, or where a request asks for it by `x-hermes-cache: use`. Absent: off.',
  );

const PII = ['card', 'email', 'phone', 'cn_id', 'iban'] as const;
const SECRETS = ['api_key', 'private_key', 'jwt'] as const;
export const detections = () => z.array(z.enum([...PII, ...SECRETS])).min(1);

/** The keys that belong to each kind. */
const KEYS = {
  pii: ['detect'],
  secrets: ['detect'],
  block_list: ['words'],
  webhook: ['url', 'secret_env'],
  prompt_size: ['max_characters', 'max_tokens'],
  output_size: ['max_characters'],
} as const;

type Wrong = (key: string, message: string) => void;
function checkKeys(entry: { kind: string; detect?: string[] | undefined }, keys: Readonly<Record<string, readonly string[]>>, wrong: Wrong): void {
  const own = keys[entry.kind] ?? [];
  const given = new Map<string, unknown>(Object.entries(entry));
  for (const key of new Set(Object.values(keys).flat()))
    if (given.get(key) !== undefined && !own.includes(key)) wrong(key, `belongs to other kinds; ${entry.kind} takes ${own.join(', ')}`);
  const known: readonly string[] = entry.kind === 'pii' ? PII : SECRETS;
  if (own.includes('detect') && entry.detect?.some((name) => !known.includes(name))) wrong('detect', `${entry.kind} knows ${known.join(', ')}`);
}

const REDACT_KEYS = { pii: ['detect'], secrets: ['detect'], block_list: ['words'], pattern: ['regex'] } as const;
/** Steps of an expression's program: content is bounded, and so is what looking at it may take. */
const MAX_PROGRAM = 500;

/** An entry of `trace.redact`. */
export function checkRedactRule(entry: RedactRule, context: z.core.$RefinementCtx<RedactRule>): void {
  const wrong = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message });
  checkKeys(entry, REDACT_KEYS, wrong);
  if (entry.kind === 'block_list' && entry.words === undefined) wrong('words', 'is missing');
  if (entry.kind === 'pattern' && entry.regex === undefined) wrong('regex', 'is missing');
  try {
    if (entry.regex !== undefined && RE2JS.compile(entry.regex).programSize() > MAX_PROGRAM) wrong('regex', 'is too large; make several of it');
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /i, '') : 'it does not compile';
    wrong('regex', `is not a regular expression that runs in linear time (RE2): ${reason}`);
  }
}

const guard = z
  .strictObject({
    id: id().describe('Name in refusals, logs and metrics; unique.'),
    kind: z.enum(['pii', 'secrets', 'block_list', 'webhook', 'prompt_size', 'output_size']).describe('What is looked for.'),
    action: z
      .enum(['block', 'redact', 'flag'])
      .default('block')
      .describe(
        '`block` refuses (400 `content_policy_violation`); `redact` puts placeholders in its place, and back in the answer; `flag` only tells (`x-hermes-guard`, log, metric).',
      ),
    apply: z
      .array(z.enum(['input', 'output']))
      .min(1)
      .default(['input', 'output'])
      .describe('What goes to the model, what comes from it.'),
    detect: detections()
      .optional()
      .describe(`Of \`pii\`: ${PII.join(', ')}; of \`secrets\`: ${SECRETS.join(', ')}. Default: all of the kind.`),
    words: z
      .array(text())
      .min(1)
      .optional()
      .describe('Of `block_list`: words and phrases, found as `keywords` of rules are (NFKC, any case, at word edges, Chinese anywhere).'),
    url: address().optional().describe('Of `webhook`: address that is asked by POST for a verdict.'),
    secret_env: environmentName().optional().describe('Of `webhook`: variable with the secret that signs what is posted. Unset refuses the start.'),
    timeout_ms: milliseconds(1).default(2000).describe('Of `webhook`: milliseconds until it counts as broken.'),
    on_error: z.enum(['block', 'allow']).default('block').describe('Of `webhook`: what a broken one means.'),
    max_characters: whole(1).optional().describe('Of `prompt_size`, `output_size`: most characters.'),
    max_tokens: whole(1).optional().describe('Of `prompt_size`: most tokens of the messages.'),
  })
  .superRefine((entry, context) => {
    const wrong = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message });
    checkKeys(entry, KEYS, wrong);
    if (entry.kind === 'block_list' && entry.words === undefined) wrong('words', 'is missing');
    if (entry.kind === 'webhook' && entry.url === undefined) wrong('url', 'is missing');
    if (entry.kind.endsWith('_size') && entry.max_characters === undefined && entry.max_tokens === undefined) wrong('max_characters', 'is missing');
    if (entry.action === 'redact' && (entry.kind === 'webhook' || entry.kind === 'prompt_size'))
      wrong('action', `${entry.kind} can block or flag; there is nothing that it could put in the place of`);
  });

export const guards = z
  .array(guard)
  .default([])
  .superRefine((list, context) => {
    for (const [index, { id }] of list.entries())
      if (list.findIndex((other) => other.id === id) !== index) context.addIssue({ code: 'custom', path: [index, 'id'], message: 'stands twice' });
  })
  .describe('Content that must not pass, in both directions, streams too. Absent: off.');

export const toolLoopGuard = z
  .strictObject({
    repeats: whole(2, 100)
      .default(3)
      .describe('Times that the same tool may be called with the same arguments, and rounds in a row that may bring nothing new.'),
  })
  .optional()
  .describe('Ends a turn whose tool rounds go round in a circle: the model is asked once more, without tools. Absent: only `tools_max_rounds` ends it.');
