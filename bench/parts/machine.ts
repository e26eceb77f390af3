import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { root } from './servers.ts';

function firstLine(command: string, args: readonly string[]): string {
  try {
    return (
      execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
        .trim()
        .split('\n')[0] ?? ''
    );
  } catch (thrown) {
    // wrk tells its version and ends with 1.
    const { stdout } = thrown as { stdout?: string };
    return stdout?.trim().split('\n')[0] ?? '';
  }
}
function versionOf(file: string): string {
  try {
    return (JSON.parse(readFileSync(join(root, file), 'utf8')) as { version: string }).version;
  } catch {
    return 'absent';
  }
}

/** What the figures were measured with. */
export function describeMachine(): string {
  const commit = firstLine('git', ['rev-parse', '--short', 'HEAD']);
  return [
    `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 1024 ** 3)} GB, Linux ${release()}`,
    `Node ${process.version.slice(1)}`,
    `hermes ${versionOf('package.json')}${commit ? ` (${commit})` : ''}`,
    `http-proxy-3 ${versionOf('node_modules/http-proxy-3/package.json')}`,
    `Portkey's gateway ${versionOf('bench/portkey/node_modules/@portkey-ai/gateway/package.json')}`,
    `${firstLine('sh', ['-c', 'nginx -v 2>&1']).replace(/^nginx version: nginx\//, 'nginx ')}`,
    firstLine('wrk', ['-v']).replace(/ \[.*/, ''),
  ].join('; ');
}
