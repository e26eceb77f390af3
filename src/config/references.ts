import { problemOfSchema } from '../tools/params.ts';
import { isRecord } from '../wire/json.ts';
import { idleGrants, isToolKnown } from './grants.ts';
import { elements, type Inventory, strings } from './inventory.ts';
import { checkMatch } from './match.ts';
import { didYouMean, oneOf, type Path } from './problems.ts';
import type { MissingName } from './unless-added.ts';

export interface Findings {
  report(path: Path, message: string): void;
  warn(path: Path, message: string): void;
  /** A name that a plugin may add once it is set up. Where there are no plugins it is a mistake; of a tool, a warning. */
  unlessAdded(path: Path, missing: MissingName): void;
}

/** Everything that names something else: models, rules, tools, providers. Reads leniently; what has the wrong form was already told. */
export function checkReferences(file: Record<string, unknown>, inventory: Inventory, matchers: readonly string[], findings: Findings): void {
  checkRules(file.route_rules, ['route_rules'], inventory, matchers, findings);
  const model = (value: unknown, path: Path) => checkModelName(value, path, inventory, findings);
  if (file.default_model !== 'default_model' || !inventory.models.has('default_model')) model(file.default_model, ['default_model']);

  const cost = isRecord(file.cost) ? file.cost : {};
  for (const [entry, index] of elements(cost.schedule)) {
    model(entry.model, ['cost', 'schedule', index, 'model']);
    for (const key of ['routes', 'except_routes']) {
      for (const rule of strings(entry[key])) {
        if (!inventory.rules.has(rule) && rule !== 'default') {
          findings.warn(['cost', 'schedule', index, key], `\`${rule}\` is no rule of route_rules${didYouMean(rule, inventory.rules)}`);
        }
      }
    }
  }
  for (const [entry, index] of elements(cost.budgets)) model(entry.switch_to, ['cost', 'budgets', index, 'switch_to']);
  const session = isRecord(file.session) ? file.session : {};
  if (isRecord(session.summarize_dropped)) model(session.summarize_dropped.model, ['session', 'summarize_dropped', 'model']);
  checkUpstreamName(file, inventory, findings);

  checkTwice(file.tools, ['tools'], 'tool', findings);
  for (const [tool, index] of elements(file.tools)) {
    const problem = isRecord(tool.parameters) ? problemOfSchema(tool.parameters) : undefined;
    if (problem !== undefined) findings.report(['tools', index, 'parameters'], `is no JSON Schema: ${problem}`);
  }
  checkTwice(cost.schedule, ['cost', 'schedule'], 'schedule entry', findings);
  checkTwice(cost.budgets, ['cost', 'budgets'], 'budget', findings);
  const auth = isRecord(file.auth) ? file.auth : {};
  checkTwice(auth.keys, ['auth', 'keys'], 'key', findings);
  checkTwice(auth.signatures, ['auth', 'signatures'], 'signing service', findings, 'service');
  for (const [key, index] of elements(auth.keys)) {
    const given = ['key_env', 'sha256'].filter((name) => key[name] !== undefined).length;
    if (given !== 1) findings.report(['auth', 'keys', index], given === 0 ? 'needs `key_env` or `sha256`' : 'has both `key_env` and `sha256`: give one');
  }
  checkGrants(auth, inventory, findings);
}

function checkGrants(auth: Record<string, unknown>, inventory: Inventory, findings: Findings): void {
  const known = { models: [...inventory.models.keys()], aliases: inventory.aliases, tools: [...inventory.tools] };
  for (const list of ['keys', 'signatures']) {
    for (const [entry, index] of elements(auth[list])) {
      for (const { key, name, said, mend } of idleGrants({ models: strings(entry.models), tools: strings(entry.tools) }, known)) {
        const path = ['auth', list, index, key];
        if (key === 'models') findings.warn(path, `${said}${mend}: it allows nothing`);
        else findings.unlessAdded(path, { kind: 'tool', name, said: `${said}: it allows nothing`, known: inventory.tools });
      }
    }
  }
}

/** Rules of the file or of the shadow's file. */
export function checkRules(list: unknown, base: Path, inventory: Inventory, matchers: readonly string[], findings: Findings): void {
  checkTwice(list, base, 'rule', findings);
  for (const [rule, index] of elements(list)) {
    if (rule.match !== undefined) checkMatch(rule.match, [...base, index, 'match'], matchers, findings);
    checkModelName(rule.model, [...base, index, 'model'], inventory, findings);
    for (const tool of strings(rule.tools)) {
      if (!isToolKnown(tool, inventory.tools))
        findings.unlessAdded([...base, index, 'tools'], {
          kind: 'tool',
          name: tool,
          said: `nothing defines the tool \`${tool}\`: it will not be available`,
          known: inventory.tools,
        });
    }
  }
}

function checkModelName(value: unknown, path: Path, inventory: Inventory, findings: Findings): void {
  if (typeof value !== 'string' || value === '' || inventory.idOf(value) !== undefined || inventory.models.size === 0) return;
  const named = [...inventory.models.values()].find((model) => model.value.model_name === value);
  const known = [...inventory.models.keys(), ...inventory.aliases.keys(), 'default_model'];
  const mend = named ? ` (did you mean \`${named.id}\`, whose model_name it is?)` : didYouMean(value, known) || `; known: ${oneOf(inventory.models.keys())}`;
  findings.report(path, `\`${value}\` is not a model of the registry${mend}`);
}

function checkUpstreamName(file: Record<string, unknown>, inventory: Inventory, findings: Findings): void {
  const known = [...inventory.providers.keys(), ...inventory.models.keys()];
  const passthrough = isRecord(file.passthrough) ? file.passthrough.upstream : undefined;
  if (typeof passthrough === 'string' && passthrough !== '' && !known.includes(passthrough)) {
    findings.report(
      ['passthrough', 'upstream'],
      `\`${passthrough}\` is neither a provider nor a model${didYouMean(passthrough, known) || `; known: ${oneOf(known)}`}`,
    );
  }
  const embedding = isRecord(file.embedding) ? file.embedding : {};
  const provider = embedding.provider;
  if (typeof provider !== 'string' || provider === 'builtin') return;
  if (!inventory.providers.has(provider)) {
    const names = [...inventory.providers.keys(), 'builtin'];
    findings.report(['embedding', 'provider'], `\`${provider}\` is not a provider${didYouMean(provider, names) || `; known: ${oneOf(names)}`}`);
  }
  if (embedding.model_name === undefined) findings.report(['embedding', 'model_name'], 'is missing: the embedding model at that provider');
}

function checkTwice(list: unknown, base: Path, noun: string, findings: Findings, key = 'id'): void {
  const seen = new Set<string>();
  for (const [item, index] of elements(list)) {
    const id = item[key];
    if (typeof id !== 'string') continue;
    if (seen.has(id)) findings.report([...base, index, key], `there is another ${noun} \`${id}\` above: each needs its own ${key}`);
    seen.add(id);
  }
}
