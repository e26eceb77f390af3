export type Encoding = 'o200k_base' | 'cl100k_base';

/** How a model's tokens are counted: a tiktoken encoding, and for other vendors' models their tokens for one of it. */
export interface Scale {
  encoding: Encoding;
  ratio: number;
}

/** Source: tiktoken's model table (openai/tiktoken, model.py). The first prefix that fits; what fits none counts as o200k_base. */
const ENCODINGS: readonly (readonly [prefix: string, encoding: Encoding])[] = [
  ['gpt-4o', 'o200k_base'],
  ['gpt-4.1', 'o200k_base'],
  ['gpt-4.5', 'o200k_base'],
  ['gpt-4', 'cl100k_base'],
  ['gpt-3.5', 'cl100k_base'],
  ['gpt-35', 'cl100k_base'],
  ['text-embedding-', 'cl100k_base'],
];

/**
 * Tokens of other vendors' tokenizers for one of o200k_base, on the safe side for prose and JSON in English and Chinese:
 * what is counted too high is trimmed a little early, what is counted too low is refused by the upstream. docs/sessions.md has the table.
 */
const RATIOS: readonly (readonly [prefix: string, ratio: number])[] = [
  ['claude', 1.25],
  ['gemini', 1.1],
  ['mistral', 1.25],
  ['llama', 1.15],
  ['deepseek', 1.1],
  ['qwen', 1.1],
  ['glm', 1.1],
  ['kimi', 1.1],
  ['moonshot', 1.1],
];

const known = new Map<string, Scale>();
const MAX_KNOWN = 1000;

export function scaleOf(modelName: string): Scale {
  let scale = known.get(modelName);
  if (scale === undefined) {
    // Aggregators put the vendor before the name: `openai/gpt-4`.
    const name = modelName.slice(modelName.lastIndexOf('/') + 1).toLowerCase();
    const encoding = ENCODINGS.find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'o200k_base';
    scale = { encoding, ratio: RATIOS.find(([prefix]) => name.startsWith(prefix))?.[1] ?? 1 };
    if (known.size < MAX_KNOWN) known.set(modelName, scale);
  }
  return scale;
}

export function scaled(tokens: number, { ratio }: Scale): number {
  return ratio === 1 ? tokens : Math.ceil(tokens * ratio);
}
