import { writeFileSync } from 'node:fs';
import { toJsonSchema } from '../src/config/json-schema.ts';
import { toReferencePage } from '../src/config/reference-page.ts';

/** Writes what is made from the configuration's schema: the JSON Schema for editors and the reference page. */
const schema = toJsonSchema();
const root = new URL('../', import.meta.url);
writeFileSync(new URL('config/hermes.schema.json', root), `${JSON.stringify(schema, null, 2)}\n`);
writeFileSync(new URL('docs/configuration.md', root), toReferencePage(schema));
