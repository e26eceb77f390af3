import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const read = (name: string): string => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');

it('every alert has a page, is in the table of the operations, and no page is for an alert that is gone', () => {
  const { groups } = parse(read('grafana/alerts.yml')) as { groups: { rules: { alert: string }[] }[] };
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).sort();
  const pages = [...read('docs/alerts.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name).sort();
  assert.deepEqual(pages, alerts);
  const table = read('docs/operations.md');
  for (const alert of alerts) assert.ok(table.includes(`[${alert}](alerts.md#${alert.toLowerCase()})`), alert);
});
