import { writeFileSync } from 'node:fs';
import { runAll, toCompatibilityPage } from '../test/conformance/compatibility.ts';

/** Writes docs/compatibility.md from a run of the official SDKs. */
const { results } = await runAll();
writeFileSync(new URL('../docs/compatibility.md', import.meta.url), toCompatibilityPage(results));
for (const { name, same, direct, hermes } of results)
  if (!same) process.stderr.write(`${name}\n  direct ${JSON.stringify(direct)}\n  hermes ${JSON.stringify(hermes)}\n`);
