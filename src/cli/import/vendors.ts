/** How LiteLLM's prefixes are reached: by which provider of hermes, at which address, with which variable's key. */
export interface Vendor {
  provider: 'openai' | 'anthropic';
  apiBase?: string;
  keyEnv?: string;
  settings?: Readonly<Record<string, unknown>>;
  /** LiteLLM is told the server's own address here, and speaks the vendor's form; the OpenAI-compatible one lies beneath. */
  beneath?: string;
}

const compatible = (apiBase: string, keyEnv: string, settings?: Vendor['settings']): Vendor => ({
  provider: 'openai',
  apiBase,
  keyEnv,
  ...(settings ? { settings } : {}),
});

/** Addresses as the vendors document them for OpenAI-compatible clients. */
export const VENDORS: Readonly<Record<string, Vendor>> = {
  openai: { provider: 'openai', apiBase: 'https://api.openai.com/v1', keyEnv: 'OPENAI_API_KEY' },
  azure: { provider: 'openai', keyEnv: 'AZURE_API_KEY', settings: { path: '/openai/deployments/{model}/chat/completions' } },
  anthropic: { provider: 'anthropic', keyEnv: 'ANTHROPIC_API_KEY' },
  deepseek: compatible('https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'),
  dashscope: compatible('https://dashscope.aliyuncs.com/compatible-mode/v1', 'DASHSCOPE_API_KEY'),
  moonshot: compatible('https://api.moonshot.cn/v1', 'MOONSHOT_API_KEY'),
  volcengine: compatible('https://ark.cn-beijing.volces.com/api/v3', 'VOLCENGINE_API_KEY'),
  gemini: compatible('https://generativelanguage.googleapis.com/v1beta/openai', 'GEMINI_API_KEY'),
  groq: compatible('https://api.groq.com/openai/v1', 'GROQ_API_KEY'),
  mistral: compatible('https://api.mistral.ai/v1', 'MISTRAL_API_KEY', {
    max_tokens_field: 'max_tokens',
    developer_role: false,
    stream_options: false,
    tool_call_ids: 'nine',
  }),
  openrouter: compatible('https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'),
  together_ai: compatible('https://api.together.xyz/v1', 'TOGETHERAI_API_KEY'),
  fireworks_ai: compatible('https://api.fireworks.ai/inference/v1', 'FIREWORKS_AI_API_KEY'),
  xai: compatible('https://api.x.ai/v1', 'XAI_API_KEY'),
  perplexity: compatible('https://api.perplexity.ai', 'PERPLEXITYAI_API_KEY'),
  ollama: { provider: 'openai', apiBase: 'http://127.0.0.1:11434', beneath: '/v1' },
  ollama_chat: { provider: 'openai', apiBase: 'http://127.0.0.1:11434', beneath: '/v1' },
  hosted_vllm: { provider: 'openai' },
  vllm: { provider: 'openai' },
  lm_studio: { provider: 'openai' },
  openai_like: { provider: 'openai' },
};

/** As hermes takes an address of this vendor; a variable's value is left as it is. */
export function toApiBase({ beneath }: Vendor, address: string): string {
  const plain = address.replace(/\/+$/, '');
  if (beneath === undefined || plain.endsWith(beneath)) return address;
  return `${plain.replace(/\/api(\/(generate|chat))?$/, '')}${beneath}`;
}

/** Bare names are OpenAI's, but for Anthropic's own family. */
export function splitModel(model: string): { prefix: string; name: string } {
  const slash = model.indexOf('/');
  if (slash > 0) return { prefix: model.slice(0, slash), name: model.slice(slash + 1) };
  return { prefix: model.startsWith('claude') ? 'anthropic' : 'openai', name: model };
}
