import type { Command } from 'commander';
import { createConfigReader } from '../app/read-config.ts';
import { loadPlugins } from '../pipeline/load-plugins.ts';
import { orderPlugins } from '../pipeline/order.ts';

export function registerPluginsCommand(program: Command): void {
  program
    .command('plugins')
    .description('List the pipeline in order.')
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .action(async ({ config: file }: { config?: string }) => {
      const { config } = (await createConfigReader({ file })).read();
      const ordered = orderPlugins(await loadPlugins(config.pipeline.plugins_dir), config.pipeline.order);
      const width = Math.max(...ordered.map(({ plugin }) => plugin.name.length));
      for (const { plugin, file: source, replaces } of ordered) {
        const notes = [source ?? 'hermes', ...(replaces ? ["takes the place of hermes' own"] : []), ...(plugin.optional ? ['optional'] : [])];
        process.stdout.write(`${plugin.name.padEnd(width)}  ${notes.join(', ')}\n`);
      }
    });
}
