import type { Command } from 'commander';
import { createConfigReader } from '../app/read-config.ts';
import { CommandFailed } from './command-failed.ts';
import { lintFile } from './lint-file.ts';

export function registerConfigCommands(program: Command): void {
  const config = program.command('config').description('Look at the configuration without starting.');
  config
    .command('check')
    .description('Validate the configuration: every mistake at once, exit 1.')
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .action(async ({ config: file }: { config?: string }) => {
      const { registries, read } = await createConfigReader({ file });
      const { config: loaded, warnings } = read();
      for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`);
      const broken = lintFile(loaded.file, registries.matchers).filter(({ level }) => level === 'error');
      if (broken.length > 0) throw new CommandFailed(broken.map(({ rule, line, message }) => `${loaded.file}:${line ?? 0} ${rule}: ${message}`).join('\n'));
      process.stdout.write(`${loaded.file}: good (${loaded.registry.models.size} models, ${loaded.route_rules.length} rules, ${loaded.tools.length} tools)\n`);
    });
}
