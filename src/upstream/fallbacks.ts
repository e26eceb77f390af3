import type { ModelEntry } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';

/** The model itself, then its chain of fallbacks. One that the key may not use is passed over, as if it were down: its own fallback follows. */
export function* fallbacks(primary: ModelEntry, { config, principal, background }: Exchange): Generator<ModelEntry> {
  const seen = new Set<string>();
  for (let model: ModelEntry | undefined = primary; model && !seen.has(model.id); ) {
    seen.add(model.id);
    if (model === primary || mayUse(principal?.models ?? ['*'], model.id)) yield model;
    // Another model's answer would say nothing of a shadow's candidate.
    const target: string | undefined = background ? undefined : model.failover.fallback_target;
    model = target === undefined ? undefined : (config.registry.models.get(target) ?? config.registry.find(target));
  }
}

/** `*` stands for anything. */
function mayUse(patterns: readonly string[], model: string): boolean {
  return patterns.some((pattern) => pattern === '*' || pattern === model || (pattern.includes('*') && fits(pattern.split('*'), model)));
}

function fits([head = '', ...rest]: readonly string[], name: string): boolean {
  const tail = rest.pop() ?? '';
  if (!name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length) return false;
  let at = head.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= name.length - tail.length;
}
