import { z } from 'zod';
import { budget } from './schema-access.ts';
import { address, days, decimal, environmentName, flag, hours, id, milliseconds, priority, text, timezone, whole } from './values.ts';

/** `1` is as good a user level as `gold`. */
const word = () => z.preprocess((value) => (typeof value === 'number' ? String(value) : value), text());
const wordOrWords = () => z.union([word(), z.array(word()).min(1)]);
const regex = () =>
  z.union([
    z.string().min(1, 'must not be empty'),
    z.strictObject({
      pattern: z.string().min(1, 'must not be empty').describe('The expression (RE2: linear time, no look-around, no back-references).'),
      flags: z
        .string()
        .regex(/^[imsu]*$/, 'may hold the flags i, m, s and u')
        .optional()
        .describe('Default: `i`.'),
    }),
  ]);

export interface MatchObject {
  [matcher: string]: unknown;
}
type Match = string | MatchObject;
/** Keys of `match` that hermes has itself; others are files in the plugins folder. Unknown keys are told by `match.ts`, which knows those. */
const conditions: Record<string, z.ZodType> = {
  keywords: z.array(word()).min(1, 'needs at least one keyword').optional().describe('One of these words; CJK anywhere, ASCII at word edges; case ignored.'),
  require_all: flag().optional().describe('All of `keywords` instead of one.'),
  regex: regex().optional().describe('A regular expression, or `{ pattern, flags }`.'),
  embedding: z
    .strictObject({
      top_k: whole(1).default(1).describe('The mean of the k best examples counts.'),
      min_score: decimal(-1, 1).default(0.75).describe('Least cosine similarity.'),
      min_margin: decimal(0, 2).optional().describe("Least distance to the nearest other rule's examples. Default: none."),
      examples: z.array(word()).min(1, 'needs at least one example').describe('Sentences that mean this.'),
    })
    .optional()
    .describe('Likeness in meaning to examples.'),
  user_level: wordOrWords().optional().describe('User level of the request; one, or a list.'),
  service_type: wordOrWords().optional().describe('Service of the request.'),
  priority: z
    .union([priority(), z.array(priority()).min(1)])
    .optional()
    .describe('Priority of the request.'),
  project: wordOrWords().optional().describe('Project of the request.'),
  hours: hours().optional().describe('Hours like "09:00-18:00" in `routing.timezone`, half-open.'),
  any: z
    .lazy(() => z.array(match).min(1, 'needs at least one'))
    .optional()
    .describe('One of these must hold.'),
  all: z
    .lazy(() => z.array(match).min(1, 'needs at least one'))
    .optional()
    .describe('All of these must hold.'),
  not: z
    .lazy(() => match)
    .optional()
    .describe('This must not hold.'),
};
const matchObject: z.ZodType<MatchObject> = z.looseObject(conditions).meta({ id: 'conditions' });
const match: z.ZodType<Match> = z.union([z.string().min(1, 'must not be empty'), matchObject]).meta({ id: 'match' });
export const MATCHERS: readonly string[] = Object.keys(conditions);

export const routeRules = z
  .array(
    z.strictObject({
      id: id().describe('Name of the rule in headers, metrics and reports; unique.'),
      match: match.describe('A regular expression as a string, or an object whose keys must all hold.'),
      model: text().describe("A model's id, or `default_model`."),
      tools: z.array(text()).optional().describe('Server-side tools that it permits. Absent: none.'),
      priority: priority().optional().describe('Priority of a request that states none.'),
    }),
  )
  .default([])
  .describe('From top to bottom; the first hit wins.');

export const routing = z
  .strictObject({
    unknown_model: z.enum(['reject', 'route']).default('reject').describe('A `model` that nobody knows: 404, or routed as if it were `auto`.'),
    timezone: timezone().optional().describe("Time zone of `hours`. Default: `cost.timezone`, then the system's."),
  })
  .prefault({})
  .describe('Routing as a whole.');

export const embedding = z
  .strictObject({
    provider: text().describe("A provider's name, or `builtin` (in this process, no service)."),
    model_name: text().optional().describe('Embedding model; needed unless `builtin`.'),
    timeout_ms: milliseconds(1).default(800).describe('Milliseconds after which the rule is skipped.'),
    api_base: address().optional().describe("Address instead of the provider's."),
    api_key_env: environmentName().optional().describe("Variable with the key instead of the provider's."),
  })
  .optional()
  .describe('Service for `embedding` rules. Absent while rules use it: `builtin`, with a warning.');

const schedule = z.strictObject({
  id: id().describe('Name in traces; unique.'),
  hours: hours().describe('Hours like "02:00-08:00" in `cost.timezone`, half-open, may pass midnight.'),
  days: days().optional().describe('Days like mon-fri. Default: all.'),
  except_priority: z.array(priority()).default([]).describe('Priorities that it leaves alone.'),
  except_routes: z.array(text()).default([]).describe('Rules that it leaves alone.'),
  routes: z.array(text()).optional().describe('Only these rules.'),
  services: z.array(text()).optional().describe('Only these services.'),
  tiers: z
    .array(z.enum(['low', 'mid', 'high']))
    .optional()
    .describe('Only models of these tiers.'),
  model: text().describe('Model (id) that serves instead.'),
});
export const cost = z
  .strictObject({
    timezone: timezone().optional().describe("Time zone of days and hours. Default: the system's."),
    unpriced: z.enum(['allow', 'refuse']).default('allow').describe('Calls of a model without a price: allowed with a warning and a metric, or refused.'),
    schedule: z.array(schedule).default([]).describe('The first entry that fits changes the model; an explicit model is left alone.'),
    budgets: z.array(budget).default([]).describe('What a service, project, user or key may spend a day or a month.'),
  })
  .prefault({})
  .describe('Money.');

export const rollout = z
  .strictObject({
    rules_file: text().describe('File with the candidate `route_rules:` (or a bare list), relative to this file.'),
    percent: decimal(0, 100).describe('Share that the candidate decides, 0 to 100. More never takes anybody back to the live rules.'),
    by: z
      .enum(['session', 'user', 'key'])
      .default('session')
      .describe('Whose share: one of them is always decided by the same rules. A request without a session (user) goes by its text.'),
  })
  .optional()
  .describe('Candidate rules that decide a share of the traffic for real.');

export const shadow = z
  .strictObject({
    sample: decimal(0, 1).default(0.1).describe('Share of the requests, 0 to 1.'),
    rules_file: text().optional().describe('File with the candidate `route_rules:` (or a bare list), relative to this file.'),
    run_models: flag().default(false).describe("Also answer with the candidate's model, in the background."),
    usd_per_day: decimal(0).default(1).describe('Most US dollars a day for that.'),
  })
  .optional()
  .describe('Candidate rules, tried beside the real ones without touching the client.');
