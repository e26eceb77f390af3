import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { parseDocument, stringify } from 'yaml';
import { CommandFailed } from './command-failed.ts';
import { fromLitellm, type Imported } from './import/from-litellm.ts';
import { isBlock } from './import/values.ts';

export function registerImportCommand(program: Command): void {
  program
    .command('import')
    .description("Make a configuration of another gateway's.")
    .command('litellm <file>')
    .description("LiteLLM's proxy configuration: models, routing, fallbacks and keys. What has no counterpart is named.")
    .option('--out <file>', 'where to write it (default: standard output)')
    .action((file: string, { out }: { out?: string }) => {
      const imported = fromLitellm(read(file));
      if (!Array.isArray(imported.config.models) || imported.config.models.length === 0)
        throw new CommandFailed([`${file}: no model could be taken over`, ...imported.findings].join('\n'));
      const text = render(imported);
      if (out === undefined) process.stdout.write(text);
      else writeNew(out, text);
      for (const finding of imported.findings) process.stderr.write(`${finding}\n`);
      process.stderr.write(`${imported.findings.length} parts need a look. Then: hermes config check${out === undefined ? '' : ` --config ${out}`}\n`);
    });
}

function read(file: string): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read`, { cause });
  }
  const document = parseDocument(text, { merge: true });
  const [error] = document.errors;
  if (error) throw new CommandFailed(`${file}: ${error.message}`);
  const value: unknown = document.toJS({ maxAliasCount: 1000 });
  if (!isBlock(value)) throw new CommandFailed(`${file} is no configuration of LiteLLM: it has no model_list`);
  return value;
}

/** A configuration that somebody has worked on is never overwritten. */
function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' });
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be written, or is there already`, { cause });
  }
}

function render({ config, findings }: Imported): string {
  const notes = findings.length === 0 ? '' : `#\n# To be looked at:\n${findings.map((line) => `#   ${line}\n`).join('')}`;
  return `# Made of a LiteLLM configuration.\n${notes}\n${stringify(config, { lineWidth: 140 })}`;
}
