import type { Command } from 'commander';
import { createConfigReader } from '../app/read-config.ts';
import type { Registries } from '../app/registries.ts';
import type { Config } from '../contracts/config.ts';
import { hasUserPlugins } from '../pipeline/load-plugins.ts';
import { CommandFailed } from './command-failed.ts';
import { lintFile } from './lint-file.ts';
import { createQuietHouse } from './quiet-house.ts';

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
      if (await namesPlugins(loaded)) await checkPlugins(loaded, registries);
      const broken = lintFile(loaded.file, registries.matchers).filter(({ level }) => level === 'error');
      if (broken.length > 0) throw new CommandFailed(broken.map(({ rule, line, message }) => `${loaded.file}:${line ?? 0} ${rule}: ${message}`).join('\n'));
      process.stdout.write(`${loaded.file}: good (${loaded.registry.models.size} models, ${loaded.route_rules.length} rules, ${loaded.tools.length} tools)\n`);
    });
}

/** Only then it takes the second that setting up takes. */
async function namesPlugins({ pipeline, plugins }: Config): Promise<boolean> {
  return pipeline.order.length > 0 || Object.keys(plugins).length > 0 || (await hasUserPlugins())(pipeline.plugins_dir);
}

/** Their files, their settings, their order, and what they add. */
async function checkPlugins(config: Config, registries: Registries): Promise<void> {
  try {
    await (await createQuietHouse(config, registries)).close();
  } catch (cause) {
    throw new CommandFailed(`${config.file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
