import type { Findings } from './findings.ts';
import { type Block, perMillion, present, toBlock, toMilliseconds, toNumber, toSetting, toText, variableOf } from './values.ts';
import { splitModel, toApiBase, VENDORS } from './vendors.ts';

/** One entry of `model_list`, as the fields that a model and an entry of `upstreams` share. */
export interface Deployment {
  group: string;
  provider: 'openai' | 'anthropic';
  settings: Record<string, unknown>;
  weight: number | undefined;
  /** `order`: the lowest is asked first. */
  order: number | undefined;
  mode: string;
  contextWindow: number | undefined;
  retries: number | undefined;
}

/** Settled elsewhere or needless here: hermes drops what an upstream cannot take and says so. */
const TAKEN = new Set([
  'model',
  'api_key',
  'api_base',
  'base_url',
  'api_version',
  'weight',
  'order',
  'rpm',
  'tpm',
  'timeout',
  'stream_timeout',
  'max_tokens',
  'max_retries',
  'input_cost_per_token',
  'output_cost_per_token',
  'cache_read_input_token_cost',
  'cache_creation_input_token_cost',
  'extra_headers',
  'extra_body',
  'drop_params',
  'custom_llm_provider',
]);
const INFO_TAKEN = new Set([
  'id',
  'mode',
  'base_model',
  'max_tokens',
  'max_input_tokens',
  'max_output_tokens',
  'supports_vision',
  'supports_function_calling',
  'supports_response_schema',
  'input_cost_per_token',
  'output_cost_per_token',
  'cache_read_input_token_cost',
  'cache_creation_input_token_cost',
]);

export function toDeployment(entry: Block, path: string, findings: Findings): Deployment | undefined {
  const group = toText(entry.model_name);
  const params = toBlock(entry.litellm_params);
  const model = toText(params.model);
  if (group === undefined || model === undefined) {
    findings.add(path, 'has no model_name or no litellm_params.model and was left out');
    return undefined;
  }
  if (group.includes('*') || model.includes('*')) {
    findings.add(`${path}.model_name`, `"${group}" stands for any model: list the models that you use`);
    return undefined;
  }
  const given = toText(params.custom_llm_provider);
  const { prefix, name } =
    given === undefined ? splitModel(model) : { prefix: given, name: model.startsWith(`${given}/`) ? model.slice(given.length + 1) : model };
  const vendor = VENDORS[prefix];
  if (vendor === undefined) {
    findings.add(
      `${path}.litellm_params.model`,
      `"${prefix}" speaks a form of its own: give it a provider file (docs/custom-provider.md) or an OpenAI-compatible address`,
    );
    return undefined;
  }
  const info = toBlock(entry.model_info);
  findings.rest(path, entry, new Set(['model_name', 'litellm_params', 'model_info']));
  findings.rest(`${path}.litellm_params`, params, TAKEN);
  findings.rest(`${path}.model_info`, info, INFO_TAKEN);
  for (const limit of ['rpm', 'tpm']) {
    if (params[limit] !== undefined)
      findings.add(`${path}.litellm_params.${limit}`, 'bounds one deployment; hermes sets an upstream aside when it says 429, and bounds callers under limits');
  }
  const apiBase = toSetting(params.api_base ?? params.base_url) ?? vendor.apiBase;
  if (apiBase === undefined && vendor.provider === 'openai') {
    findings.add(`${path}.litellm_params.api_base`, 'is missing: this vendor has no address of its own; the entry was left out');
    return undefined;
  }
  return {
    group,
    provider: vendor.provider,
    settings: present({
      model_name: name,
      api_base: apiBase && toApiBase(vendor, apiBase),
      api_key_env: keyVariable(params.api_key, group, vendor.keyEnv, `${path}.litellm_params.api_key`, findings),
      api_version: prefix === 'azure' ? (toSetting(params.api_version) ?? '2024-10-21') : undefined,
      ...vendor.settings,
      headers: toHeaders(params.extra_headers, `${path}.litellm_params.extra_headers`, findings),
      extra_body: params.extra_body,
      max_tokens: toNumber(params.max_tokens),
      timeout_ms: toMilliseconds(params.timeout),
      first_token_timeout_ms: toMilliseconds(params.stream_timeout),
      pricing: toPricing({ ...info, ...params }),
      supports: toSupports(info),
    }),
    weight: toNumber(params.weight) ?? toNumber(params.rpm) ?? toNumber(params.tpm),
    order: toNumber(params.order),
    mode: toText(info.mode) ?? 'chat',
    contextWindow: toNumber(info.max_input_tokens),
    retries: toNumber(params.max_retries),
  };
}

/** A key is never copied: it gets a variable, and whoever runs the import is told which. */
function keyVariable(value: unknown, group: string, usual: string | undefined, path: string, findings: Findings): string | undefined {
  const named = variableOf(value);
  if (named !== undefined) return named;
  if (toText(value) === undefined) return usual;
  const name = `${group
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replace(/^(\d)/, '_$1')}_API_KEY`;
  findings.add(path, `is a key in the file: set the variable ${name} to it`);
  return name;
}

function toHeaders(value: unknown, path: string, findings: Findings): Record<string, string> | undefined {
  if (value === undefined) return undefined;
  const headers: Record<string, string> = {};
  for (const [name, given] of Object.entries(toBlock(value))) {
    const secret = /authorization|key|token|secret|cookie/i.test(name) && variableOf(given) === undefined;
    if (secret) findings.add(`${path}.${name}`, `looks like a credential and was not copied: write \${NAME} and set the variable`);
    else headers[name] = toSetting(given) ?? '';
  }
  return headers;
}

function toPricing(block: Block): Record<string, unknown> | undefined {
  const [input, output] = [perMillion(block.input_cost_per_token), perMillion(block.output_cost_per_token)];
  if (input === undefined || output === undefined) return undefined;
  return present({
    input_per_million: input,
    output_per_million: output,
    cached_input_per_million: perMillion(block.cache_read_input_token_cost),
    cache_write_per_million: perMillion(block.cache_creation_input_token_cost),
  });
}

function toSupports(info: Block): Record<string, unknown> | undefined {
  const asFlag = (value: unknown) => (typeof value === 'boolean' ? value : undefined);
  const supports = present({
    vision: asFlag(info.supports_vision),
    tools: asFlag(info.supports_function_calling),
    json_schema: asFlag(info.supports_response_schema),
  });
  return Object.keys(supports).length > 0 ? supports : undefined;
}
