import { z } from 'zod';
import { DEFAULT_PASSTHROUGH } from '../access/passthrough-paths.ts';
import { decimal, environmentName, flag, id, patterns, priority, seconds, text, whole } from './values.ts';

export const key = z.strictObject({
  id: id().describe('Name of the key in books, limits and logs; unique.'),
  key_env: environmentName().optional().describe('Variable that holds the key. Unset or blank refuses the start. This or `sha256`.'),
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hex digits: the SHA-256 of the key')
    .optional()
    .describe('SHA-256 of the key in hex, instead of `key_env`.'),
  service: text().optional().describe('Service that the key stands for. Default: the id.'),
  services: z.array(text()).optional().describe('Services that a request may assert by `service_type`; `*` is any. Default: its own.'),
  project: text().optional().describe('Project whose sessions it sees. Default: the service.'),
  projects: z.array(text()).optional().describe('Projects that a request may choose by `project`; `*` is any. Default: its own.'),
  admin: flag().default(false).describe('May use `/admin/*`, `/debug/*` and every pass-through path.'),
  models: patterns().default(['*']).describe('Models that it may use, by id; `*` stands for anything.'),
  tools: patterns().default(['*']).describe('Server-side tools that it may use; `order.*` is a pattern.'),
  user_levels: patterns().default(['*']).describe('User levels that a request may assert.'),
  priorities: z
    .array(z.union([priority(), z.literal('*')]))
    .default(['*'])
    .describe('Priorities that a request may assert.'),
  passthrough: z
    .array(
      z
        .string()
        .regex(/^\/v1\//, 'must begin with /v1/')
        .or(z.literal('*')),
    )
    .default([...DEFAULT_PASSTHROUGH])
    .describe('Paths that it may pass through, with what is beneath them; `*` is every path. Default: what the vendor stores nothing of.'),
  expires: z
    .string()
    .refine((value) => !Number.isNaN(Date.parse(value)), 'must be a date like 2027-01-31')
    .optional()
    .describe('Date (ISO 8601) from which it is refused.'),
});
const signature = z.strictObject({
  service: text().describe('Service that signs; the value of `x-hermes-service`.'),
  secret_env: environmentName().describe('Variable that holds the shared secret. Unset refuses the start.'),
  max_skew_seconds: seconds(1).default(300).describe('Seconds that the timestamp may be off; nonces are remembered as long.'),
  project: text().optional().describe('Project of its sessions. Default: the service.'),
  models: patterns().default(['*']).describe('Models that it may use.'),
  tools: patterns().default(['*']).describe('Server-side tools that it may use.'),
});
export const auth = z
  .strictObject({
    keys: z.array(key).default([]).describe('API keys. `API_KEY` and `ADMIN_API_KEY` are two more; with none at all one is made for this run.'),
    signatures: z.array(signature).default([]).describe('Internal services that sign their requests (HMAC-SHA256) instead of carrying a key.'),
  })
  .prefault({})
  .describe('Who may call.');

const oneOrMore = () => z.union([text(), z.array(text()).min(1)]);
export const limits = z
  .array(
    z
      .strictObject({
        per: z.enum(['user', 'service', 'session', 'key', 'project']).describe('One bucket for each distinct value of this.'),
        requests_per_minute: whole(1).optional().describe('Requests a minute.'),
        tokens_per_minute: whole(1).optional().describe('Tokens a minute: reserved at admission, settled at the end.'),
        burst: whole(1).optional().describe("Requests that may come at once. Default: a minute's worth."),
        match: z
          .strictObject({
            service_type: oneOrMore().optional().describe('Service, the asserted one if any.'),
            service: oneOrMore().optional().describe('The same as `service_type`.'),
            project: oneOrMore().optional().describe('Project.'),
            user_level: oneOrMore().optional().describe('User level.'),
            user: oneOrMore().optional().describe('User.'),
            key: oneOrMore().optional().describe("The key's id."),
            priority: z
              .union([priority(), z.array(priority()).min(1)])
              .optional()
              .describe('Priority.'),
          })
          .optional()
          .describe('Only requests with these values count; all must hold.'),
      })
      .refine(
        (rule) => rule.requests_per_minute !== undefined || rule.tokens_per_minute !== undefined,
        'limits nothing: give requests_per_minute or tokens_per_minute',
      ),
  )
  .default([])
  .describe('Token buckets; a request must fit into every one that concerns it.');

const scope = (what: string) =>
  text()
    .optional()
    .describe(`${what} whose spending counts: a name, a pattern that is one budget for all that it fits, or \`*\`: one budget for each distinct one.`);
export const budget = z
  .strictObject({
    id: id().describe('Name in traces and webhooks; unique.'),
    service: scope('Service'),
    project: scope('Project'),
    user: scope('User (`*`: each within its project)'),
    key: scope('Key, by its id,'),
    usd_per_day: decimal(0).optional().describe('US dollars a day (a day in `cost.timezone`); crossed when spent >= this.'),
    usd_per_month: decimal(0).optional().describe('US dollars a calendar month in `cost.timezone`; beside or instead of `usd_per_day`.'),
    action: z
      .enum(['switch', 'refuse'])
      .default('switch')
      .describe('What a crossed budget does for the rest of its day or month: `switch_to` instead of dearer models, or 429 `budget_exceeded`.'),
    switch_to: text()
      .optional()
      .describe('Model (id) that serves instead of dearer ones while it is crossed. Never a dearer one, nor one that cannot serve the request.'),
    warn_percent: decimal(1, 100).default(80).describe('Share of the limit at which the log warns.'),
    notify: z
      .strictObject({
        url_env: environmentName().describe('Variable that holds the webhook address.'),
        format: z.enum(['json', 'feishu', 'dingtalk', 'slack']).default('json').describe('Form of the message.'),
        secret_env: environmentName().optional().describe('Variable with the secret that signs the message (`x-hermes-signature`). Absent: unsigned.'),
      })
      .optional()
      .describe('Told once when it is crossed.'),
  })
  .superRefine((entry, context) => {
    const report = (message: string) => context.addIssue({ code: 'custom', message });
    const scopes = (['service', 'project', 'user', 'key'] as const).filter((name) => entry[name] !== undefined);
    if (scopes.length !== 1) report(scopes.length === 0 ? 'needs one of service, project, user and key' : `has ${scopes.join(' and ')}: give one`);
    if (entry.usd_per_day === undefined && entry.usd_per_month === undefined) report('limits nothing: give usd_per_day or usd_per_month');
    if (entry.action === 'switch' && entry.switch_to === undefined) report('needs `switch_to`, or `action: refuse`');
    if (entry.action === 'refuse' && entry.switch_to !== undefined) report('has `switch_to`, which `action: refuse` never uses: leave one out');
  });
