import { Findings } from './findings.ts';
import { type Deployment, toDeployment } from './litellm-deployment.ts';
import { type RouterSettings, toAttempts, toRouterSettings } from './litellm-router.ts';
import { type Block, present, toBlock, toList, toText, variableOf } from './values.ts';

/** A configuration of hermes, ready to be written, and what did not come along. */
export interface Imported {
  config: Record<string, unknown>;
  findings: readonly string[];
}

const KNOWN_BLOCKS = new Set(['model_list', 'router_settings', 'litellm_settings', 'general_settings', 'environment_variables']);
const CHAT_MODES = new Set(['chat', 'completion', 'responses']);

/** LiteLLM's proxy configuration in hermes' words. Names of model groups stay: callers change nothing but address and key. */
export function fromLitellm(file: Block): Imported {
  const findings = new Findings();
  findings.rest('', file, KNOWN_BLOCKS);
  for (const name of Object.keys(toBlock(file.environment_variables))) findings.add(`environment_variables.${name}`, 'belongs into the environment');
  const all = toList(file.model_list).flatMap((entry, index) => toDeployment(toBlock(entry), `model_list[${index}]`, findings) ?? []);
  const chats = all.filter(({ mode }) => CHAT_MODES.has(mode));
  const router = toRouterSettings(file, findings);
  const groups = groupBy(chats);
  const fallbacks = chooseFallbacks([...groups.keys()], router, findings);
  const models = [...groups].map(([group, deployments]) => toModel(group, deployments, router, fallbacks.get(group)));
  const config = present({
    auth: toAuth(toBlock(file.general_settings), findings),
    models,
    default_model: models[0]?.id,
    passthrough: toPassthrough(all, models[0], findings),
    route_rules: [{ id: 'default', match: '.*', model: 'default_model' }],
  });
  return { config, findings: findings.lines };
}

function groupBy(deployments: readonly Deployment[]): Map<string, Deployment[]> {
  const groups = new Map<string, Deployment[]>();
  for (const deployment of deployments) groups.set(deployment.group, [...(groups.get(deployment.group) ?? []), deployment]);
  return groups;
}

function toModel(group: string, deployments: readonly Deployment[], router: RouterSettings, fallback: string | undefined): Record<string, unknown> {
  const [first] = deployments as [Deployment];
  const windows = deployments.map(({ contextWindow }) => contextWindow).filter((size) => size !== undefined);
  const shared = present({
    context_window: windows.length === deployments.length ? Math.min(...windows) : undefined,
    timeout_ms: router.timeoutMs,
    first_token_timeout_ms: router.firstTokenTimeoutMs,
    aliases: router.aliases.get(group),
  });
  const failover = present({ ...router.failover, max_attempts: toAttempts(first.retries) ?? router.failover.max_attempts, fallback_target: fallback });
  if (deployments.length === 1)
    return present({ id: group, provider: first.provider, ...shared, ...first.settings, failover: Object.keys(failover).length > 0 ? failover : undefined });
  const ordered = deployments.some(({ order }) => order !== undefined);
  const list = ordered ? [...deployments].sort((a, b) => (a.order ?? Number.MAX_SAFE_INTEGER) - (b.order ?? Number.MAX_SAFE_INTEGER)) : deployments;
  const upstreams = list.map(({ provider, settings, weight }) =>
    present({ target: provider, ...settings, weight: weight === undefined ? undefined : Math.round(weight) }),
  );
  return { id: group, ...shared, failover: { ...failover, ...(ordered ? { strategy: 'priority' } : {}), upstreams } };
}

/** What is said of models that are not there is told. One fallback a model, chained through the models; what would close a circle is left out, for a circle never ends. */
function chooseFallbacks(groups: readonly string[], router: RouterSettings, findings: Findings): Map<string, string> {
  const chosen = new Map<string, string>();
  const known = new Set(groups);
  const leadsTo = (from: string, to: string): boolean => {
    for (let at: string | undefined = from; at !== undefined; at = chosen.get(at)) if (at === to) return true;
    return false;
  };
  const choose = (group: string, wanted: readonly string[], path: string): void => {
    const found = wanted.filter((name) => known.has(name) && name !== group);
    const target = found.find((name) => !leadsTo(name, group));
    for (const name of wanted) if (!known.has(name)) findings.add(path, `${name} is no model of this file`);
    if (target === undefined && found.length > 0) findings.add(path, `${found.join(', ')} would close a circle of fallbacks and was left out`);
    if (target !== undefined) chosen.set(group, target);
    const others = found.filter((name) => name !== target);
    if (target !== undefined && others.length > 0)
      findings.add(path, `a model has one fallback (${target}), which may have its own; left out: ${others.join(', ')}`);
  };
  for (const [group, wanted] of router.fallbacks) {
    if (known.has(group)) choose(group, wanted, `fallbacks.${group}`);
    else findings.add(`fallbacks.${group}`, `${group} is no model of this file: its fallbacks (${wanted.join(', ')}) were left out`);
  }
  for (const [group, names] of router.aliases)
    if (!known.has(group)) findings.add('model_group_alias', `${group} is no model of this file: its other names (${names.join(', ')}) were left out`);
  for (const group of groups) if (!chosen.has(group) && !router.defaultFallbacks.includes(group)) choose(group, router.defaultFallbacks, 'default_fallbacks');
  return chosen;
}

/** `master_key` is a key with all rights. Virtual keys lie in LiteLLM's database: each becomes an entry of auth.keys by hand. */
function toAuth(general: Block, findings: Findings): Record<string, unknown> | undefined {
  findings.rest('general_settings', general, new Set(['master_key', 'database_url']));
  if (general.database_url !== undefined)
    findings.add(
      'general_settings.database_url',
      'holds virtual keys, teams and budgets: give each caller an entry under auth.keys; DATABASE_URL is for sessions and books here',
    );
  if (general.master_key === undefined) return undefined;
  const name = variableOf(general.master_key) ?? 'LITELLM_MASTER_KEY';
  if (variableOf(general.master_key) === undefined && toText(general.master_key) !== undefined)
    findings.add('general_settings.master_key', `is a key in the file: set the variable ${name} to it`);
  return { keys: [{ id: 'master', key_env: name, service: 'default', services: ['*'], projects: ['*'], admin: true }] };
}

/** Embeddings, images and the like are passed through, all to one upstream. */
function toPassthrough(all: readonly Deployment[], model: Record<string, unknown> | undefined, findings: Findings): Record<string, unknown> | undefined {
  const others = all.filter(({ mode }) => !CHAT_MODES.has(mode));
  if (others.length === 0 || model === undefined) return undefined;
  const base = others[0]?.settings.api_base;
  const names = others.map(({ group, mode }) => `${group} (${mode})`).join(', ');
  if (base === 'https://api.openai.com/v1') {
    findings.add('model_list', `${names}: reached by passing through to openai; callers name the vendor's own model`);
    return { upstream: 'openai' };
  }
  findings.add('model_list', `${names}: passed through to one upstream at most; name it under passthrough.upstream`);
  return undefined;
}
