import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { type Environment, variable } from '../config/environment.ts';
import { processEnvironment } from '../config/load.ts';
import { CommandFailed } from './command-failed.ts';
import { startDemoTools } from './demo-tools.ts';
import { packageFile } from './package-root.ts';
import { serve } from './serve.ts';

const FILE = 'config/demo.yaml';
const PORT = 'DEMO_TOOLS_PORT';

export function registerDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('The whole product on embedded parts: simulated models and demo tools, no key and no server needed.')
    .option('--port <port>', 'port to listen on')
    .option('--host <host>', 'address to listen on')
    .action(async (options: { port?: string; host?: string }) => {
      const tools = await startTools(variable(processEnvironment(), PORT));
      const env: Environment = {
        ...processEnvironment({
          API_KEY: `sk-demo-${randomBytes(12).toString('hex')}`,
          // What is played with does not end up among what `hermes serve` keeps, and the two can run side by side.
          DATABASE_URL: 'sqlite:///./data/demo.db',
        }),
        // Where they listen, whatever was asked for: the configuration calls them there.
        [PORT]: String(tools.port),
      };
      const key = env.API_KEY ?? '';
      await serve({ config: packageFile(FILE), env, ...options }, (app) => {
        const address = `http://${app.host.includes(':') || app.host === '0.0.0.0' ? '127.0.0.1' : app.host}:${app.port}`;
        process.stdout.write(`\nTry it:\n\n${firstChat(address, key)}\n\n`);
      });
      await tools.close();
    });
}

/** On the port that the variable names, else on a free one. */
async function startTools(wanted = '0'): ReturnType<typeof startDemoTools> {
  const port = Number(wanted);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new CommandFailed(`${PORT} must be a port, not ${JSON.stringify(wanted)}`);
  try {
    return await startDemoTools(port);
  } catch (cause) {
    throw new CommandFailed(`The demo's tools cannot listen on port ${port}, which ${PORT} names; name another, or none`, { cause });
  }
}

function firstChat(address: string, key: string): string {
  const body = { session_id: 'user-3421', messages: [{ role: 'user', content: '帮我查一下订单20240515的状态' }], tools: ['order.query'] };
  return `curl ${address}/v1/chat \\\n  -H 'Authorization: Bearer ${key}' \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
}
