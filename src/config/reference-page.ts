import { isRecord } from '../wire/json.ts';
import type { JsonSchema } from './json-schema.ts';

interface Row {
  key: string;
  type: string;
  fallback: string;
  meaning: string;
}

/** `docs/configuration.md`: every key with its type, default, unit and effect, from the JSON Schema. */
export function toReferencePage(schema: JsonSchema): string {
  const blocks = isRecord(schema.properties) ? Object.entries(schema.properties) : [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const out = [
    '# Configuration',
    '',
    '<!-- Generated from src/config/schema*.ts by `npm run schema`. -->',
    '',
    'One YAML file: `--config FILE`, else `HERMES_CONFIG`, else `config/hermes.yaml`. `hermes config check` validates it without starting, and tells every mistake',
    'at once with its line. Explicit flags beat environment variables, these beat the file. A changed file is validated first and swapped in whole.',
    '',
    `- \`\${NAME}\` and \`\${NAME:-default}\` take environment values; an unset, empty or blank one without a default is refused. A plain \`\${\` is written \`$\${\`.`,
    '- Milliseconds and seconds may be written as `500ms`, `15s`, `2m`, `24h`; bytes as `512kb`, `20mb`, `1gb` (1024).',
    '- Keys that end in `_env` hold the *name* of an environment variable, never a secret.',
    '- Paths are relative to the file. An absent block is off, or has the defaults below.',
    '- For editors: `# yaml-language-server: $schema=./hermes.schema.json` on the first line of the file.',
    '',
  ];
  for (const [name, block] of blocks) {
    if (name === '$schema' || !isRecord(block)) continue;
    out.push(`## ${name}`, '', `${String(block.description ?? '')}${required.includes(name) ? ' Required.' : ''}`, '');
    const rows = rowsOf(block, '', schema);
    if (rows.length > 0) out.push('| key | type | default | meaning |', '| --- | --- | --- | --- |', ...rows.map(toLine), '');
    else if (typeOf(block, schema) !== 'block') out.push(`Type: ${typeOf(block, schema)}.${'default' in block ? ` Default: ${fallbackOf(block)}.` : ''}`, '');
  }
  return `${out.join('\n').trimEnd()}\n`;
}
function toLine(row: Row): string {
  const safe = (text: string) => text.replaceAll('|', '\\|');
  return `| \`${row.key}\` | ${safe(row.type)} | ${safe(row.fallback)} | ${safe(row.meaning)} |`;
}

/** The keys of a block, those of its inner blocks and lists after them. */
function rowsOf(node: JsonSchema, prefix: string, root: JsonSchema, depth = 0): Row[] {
  const block = blockOf(node, root);
  if (!block || depth > 6) return [];
  const inner = 'list' in block ? `${prefix}[]` : 'map' in block ? `${prefix}.NAME`.replace(/^\./, '') : prefix;
  const required = Array.isArray(block.node.required) ? block.node.required : [];
  const properties = isRecord(block.node.properties) ? Object.entries(block.node.properties) : [];
  return properties.flatMap(([name, property]): Row[] => {
    if (!isRecord(property)) return [];
    const key = inner === '' ? name : `${inner}.${name}`;
    const row = {
      key,
      type: typeOf(property, root),
      fallback: required.includes(name) ? 'required' : fallbackOf(property),
      meaning: String(property.description ?? descriptionOf(property, root)),
    };
    // `any`, `all` and `not` hold the same conditions again.
    const circular = ['any', 'all', 'not'].includes(name) && key.includes('match');
    return [row, ...(circular ? [] : rowsOf(property, key, root, depth + 1))];
  });
}
type Block = { node: JsonSchema; list?: true; map?: true };
function blockOf(node: JsonSchema, root: JsonSchema): Block | undefined {
  const here = follow(node, root);
  if (isRecord(here.properties)) return { node: here };
  if (isRecord(here.items)) {
    const inner = blockOf(here.items, root);
    return inner ? { node: inner.node, list: true } : undefined;
  }
  if (isRecord(here.additionalProperties)) {
    const inner = blockOf(here.additionalProperties, root);
    return inner ? { node: inner.node, map: true } : undefined;
  }
  if (!Array.isArray(here.anyOf)) return undefined;
  for (const form of here.anyOf) {
    const inner = isRecord(form) ? blockOf(form, root) : undefined;
    if (inner) return { node: inner.node };
  }
  return undefined;
}
function follow(node: JsonSchema, root: JsonSchema): JsonSchema {
  const name = typeof node.$ref === 'string' ? node.$ref.split('/').at(-1) : undefined;
  const target = name !== undefined && isRecord(root.$defs) ? root.$defs[name] : undefined;
  return isRecord(target) ? follow(target, root) : node;
}
function descriptionOf(node: JsonSchema, root: JsonSchema): string {
  return String(follow(node, root).description ?? '');
}

function typeOf(node: JsonSchema, root: JsonSchema): string {
  const here = follow(node, root);
  if (Array.isArray(here.enum))
    return here.enum
      .map((value) => `\`${String(value)}\``)
      .join(' \\| ')
      .replaceAll('\\|', '|');
  if (here.const !== undefined) return `\`${String(here.const)}\``;
  if (Array.isArray(here.anyOf)) {
    const forms = here.anyOf.filter(isRecord);
    const scalar = forms.length === 2 && forms[1]?.pattern !== undefined && forms[0]?.type !== 'string';
    return [...new Set((scalar ? forms.slice(0, 1) : forms).map((form) => typeOf(form, root)))].join(' or ');
  }
  if (here.type === 'array') return isRecord(here.items) ? `list of ${typeOf(here.items, root)}` : 'list';
  if (here.type === 'object') return isRecord(here.properties) ? 'block' : 'map';
  return { integer: 'whole number', number: 'number', boolean: 'true or false', string: 'text' }[String(here.type)] ?? 'anything';
}
function fallbackOf(node: JsonSchema): string {
  return 'default' in node && !(isRecord(node.default) && Object.keys(node.default).length === 0) ? `\`${JSON.stringify(node.default)}\`` : '';
}
