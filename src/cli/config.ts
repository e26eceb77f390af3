import type { Command } from 'commander';
import { createConfigReader } from '../app/read-config.ts';
import type { Registries } from '../app/registries.ts';
import type { Config } from '../contracts/config.ts';
import { CommandFailed } from './command-failed.ts';
import { lintFile } from './lint-file.ts';
import { setUpPlugins } from './quiet-house.ts';

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
      await checkPlugins(loaded, registries);
      const broken = lintFile(loaded.file, { matchers: registries.matchers, tools: loaded.tools.map(({ id }) => id) }).filter(({ level }) => level === 'error');
      if (broken.length > 0) throw new CommandFailed(broken.map(({ rule, line, message }) => `${loaded.file}:${line ?? 0} ${rule}: ${message}`).join('\n'));
      process.stdout.write(`${loaded.file}: good (${loaded.registry.models.size} models, ${loaded.route_rules.length} rules, ${loaded.tools.length} tools)\n`);
    });
}

async function checkPlugins(config: Config, registries: Registries): Promise<void> {
  try {
    await setUpPlugins(config, registries);
  } catch (cause) {
    throw new CommandFailed(`${config.file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
