import type { Config } from '../../contracts/config.ts';
import type { Environment } from '../../contracts/telemetry.ts';
import { createBuiltinEmbedder } from './builtin-embedder.ts';
import type { Embedder } from './embedder.ts';
import { createRemoteEmbedder, type FetchJson } from './remote-embedder.ts';

export type { FetchJson } from './remote-embedder.ts';

const BUILTIN = createBuiltinEmbedder();
const DEFAULT_MODEL_NAME = 'text-embedding-3-small';

/** What the `embedding` block says; without one, `builtin`. The address and key of a provider's name are filled in by `config`. */
export function createEmbedder(config: Config, fetchJson: FetchJson | undefined, environment: Environment): Embedder {
  const { embedding } = config;
  if (!embedding || embedding.provider === 'builtin') return BUILTIN;
  if (embedding.api_base === undefined) throw new Error(`embedding: the provider ${embedding.provider} has no api_base; give one, or use provider: builtin`);
  const apiKey = embedding.api_key_env === undefined ? undefined : config.secrets.get(embedding.api_key_env);
  return createRemoteEmbedder({ apiBase: embedding.api_base, modelName: embedding.model_name ?? DEFAULT_MODEL_NAME, apiKey }, fetchJson, environment);
}
