import { z } from 'zod';
import { isRecord } from '../wire/json.ts';
import { schema } from './schema.ts';

export type JsonSchema = Record<string, unknown>;

/** The JSON Schema of the configuration file, for editors. Describes the file before `${NAME}` is filled in. */
export function toJsonSchema(): JsonSchema {
  const made: unknown = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  if (!isRecord(made)) throw new Error('no schema');
  return { $schema: made.$schema, title: 'hermes-agent configuration', ...withoutFilledIn(made) };
}

/** The output form lists what has a default as required; in the file it is not. */
function withoutFilledIn(node: JsonSchema): JsonSchema {
  const out: JsonSchema = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === 'properties' || key === '$defs') out[key] = mapValues(value, withoutFilledIn);
    else if (Array.isArray(value)) out[key] = value.map((item: unknown) => (isRecord(item) ? withoutFilledIn(item) : item));
    else out[key] = isRecord(value) && key !== 'default' ? withoutFilledIn(value) : value;
  }
  const { properties } = out;
  if (Array.isArray(out.required) && isRecord(properties)) {
    const required = out.required.filter((name: string) => needsValue(properties[name]));
    if (required.length > 0) out.required = required;
    else delete out.required;
  }
  // zod writes the safe integers as bounds; they say nothing to a reader.
  if (out.maximum === Number.MAX_SAFE_INTEGER) delete out.maximum;
  if (out.minimum === Number.MIN_SAFE_INTEGER) delete out.minimum;
  return out.type === 'integer' || out.type === 'number' || out.type === 'boolean' ? orText(out) : out;
}

const TEXTS: Readonly<Record<string, string>> = {
  size: '^(\\d+(\\.\\d+)? *([kmgKMG]?[bB]?)|.*\\$\\{.+\\}.*)$',
  duration: '^(\\d+(\\.\\d+)? *(ms|s|m|h|d)?|.*\\$\\{.+\\}.*)$',
};
/** A number or a truth value may also be `${NAME}`, or have its unit: editors must not mark these. */
function orText(node: JsonSchema): JsonSchema {
  const { description, default: fallback, also, ...plain } = node;
  const pattern = TEXTS[String(also)] ?? '\\$\\{.+\\}';
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [plain, { type: 'string', pattern }],
  };
}
/** A block whose keys all have defaults may be left out. */
function needsValue(property: unknown): boolean {
  if (!isRecord(property) || 'default' in property) return false;
  return !(property.type === 'object' && isRecord(property.properties) && property.required === undefined);
}
function mapValues(value: unknown, map: (inner: JsonSchema) => JsonSchema): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, isRecord(inner) ? map(inner) : inner]));
}
