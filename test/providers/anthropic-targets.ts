import type { UpstreamTarget } from '../../src/contracts/exchange.ts';

export function anthropicTarget(over: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return {
    id: 'claude',
    identity: 'claude',
    provider: 'anthropic',
    modelName: 'claude-sonnet-4-5',
    apiBase: 'https://api.anthropic.com',
    apiKeyEnv: 'ANTHROPIC_API_KEY',
    apiKey: 'sk-ant',
    apiVersion: undefined,
    headers: {},
    query: {},
    extraBody: {},
    maxTokens: undefined,
    contextWindow: undefined,
    timeoutMs: 1000,
    firstTokenTimeoutMs: 1000,
    supports: { vision: true, tools: true, json_schema: true },
    reasoning: undefined,
    pricedAs: 'claude',
    weight: 1,
    quirks: {},
    ...over,
  };
}
