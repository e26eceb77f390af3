import type { Command } from 'commander';
import { missingTools } from '../app/late-mistakes.ts';
import { createConfigReader } from '../app/read-config.ts';
import type { Registries } from '../app/registries.ts';
import type { LoadedConfig } from '../config/load.ts';
import { ConfigError, formatProblem } from '../config/problems.ts';
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
      const loaded = read();
      const { registry, route_rules, tools, file: path } = loaded.config;
      for (const warning of loaded.warnings) process.stdout.write(`warning: ${warning}\n`);
      await checkPlugins(loaded, registries);
      for (const missing of missingTools(loaded)) process.stdout.write(`warning: ${formatProblem(missing)}\n`);
      const broken = lintFile(path, { matchers: registries.matchers, tools: tools.map(({ id }) => id) }).filter(({ level }) => level === 'error');
      if (broken.length > 0) throw new CommandFailed(broken.map(({ rule, line, message }) => `${path}:${line ?? 0} ${rule}: ${message}`).join('\n'));
      process.stdout.write(`${path}: good (${registry.models.size} models, ${route_rules.length} rules, ${tools.length} tools)\n`);
    });
}

async function checkPlugins(loaded: LoadedConfig, registries: Registries): Promise<void> {
  try {
    await setUpPlugins(loaded, registries);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new CommandFailed(`${loaded.config.file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
