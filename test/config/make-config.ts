import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/contracts/config.ts';

/**
 * A whole configuration from a part of one, through the real loader: `makeConfig({ models: [...], route_rules: [...] }, { OPENAI_API_KEY: 'sk' })`.
 * Without `models` there is one simulator model, `fast_model`. `env` is all that the loader sees; sessions are in memory unless it says otherwise.
 * Throws a ConfigError with every mistake.
 */
export function makeConfig(file: Record<string, unknown> = {}, env: Record<string, string> = {}, fileName = '/nowhere/hermes.yaml'): Config {
  const whole = { models: [{ id: 'fast_model', provider: 'simulator' }], ...file };
  return loadConfig({ file: fileName, text: JSON.stringify(whole), env: { DATABASE_URL: 'sqlite::memory:', ...env } }).config;
}
