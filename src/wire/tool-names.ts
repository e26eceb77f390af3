import { createHash } from 'node:crypto';

/** What both families accept as a function's name. Source: OpenAI's OpenAPI description, Anthropic's `tools.name` pattern. */
const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_LENGTH = 64;

/** Names as hermes and its callers know them (`order.query`) to names that upstreams accept (`order__query`), and back. */
export interface NameMap {
  toWire(name: string): string;
  /** A name that the map has not made comes back as it is. */
  fromWire(name: string): string;
}

/**
 * Bijective within one request: a legal name keeps itself, a dot becomes two underscores, and whatever could then be
 * mistaken for another name, or is too long, carries a hash of the original. Independent of the order of `names`, so that
 * prompt caches hold from turn to turn.
 */
export function createNameMap(names: Iterable<string>): NameMap {
  const wire = new Map<string, string>();
  const original = new Map<string, string>();
  const add = (name: string, as: string): string => {
    wire.set(name, as);
    original.set(as, name);
    return as;
  };
  const rest: string[] = [];
  for (const name of new Set(names)) {
    if (LEGAL.test(name)) add(name, name);
    else rest.push(name);
  }
  const encode = (name: string): string => {
    const plain = name.replaceAll('.', '__');
    if (LEGAL.test(plain) && !original.has(plain)) return add(name, plain);
    const hash = createHash('sha256').update(name).digest('hex');
    const stem = plain.replace(/[^a-zA-Z0-9_-]/gu, '_');
    for (let digits = 8; ; digits += 8) {
      const suffixed = `${stem.slice(0, MAX_LENGTH - digits - 1)}_${hash.slice(0, digits)}`;
      if (!original.has(suffixed)) return add(name, suffixed);
    }
  };
  for (const name of rest.sort()) encode(name);
  return {
    toWire: (name) => wire.get(name) ?? encode(name),
    fromWire: (name) => original.get(name) ?? name,
  };
}
