import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, temporaryFolder, until } from '../services.ts';

const PROGRAM = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find((file) => existsSync(file));

/** Undefined: it is here. */
export function nginxMissing(): string | undefined {
  if (PROGRAM !== undefined) return undefined;
  process.stderr.write('\n!!! SKIPPED: nginx not found: run scripts/services, or apt-get install nginx\n\n');
  return 'nginx not found';
}

export interface Nginx {
  base: string;
  /** Its error log: what happened, and how often. */
  errors(): string;
  stop(): Promise<void>;
}

/**
 * As in docs/operations.md: connections are kept, streams are not buffered, what could not be sent is sent to the other one at once.
 * `max_fails=0`: with two instances of which one is being restarted, a single mark on the other one would leave none.
 */
export async function startNginx(ports: readonly number[]): Promise<Nginx> {
  const [folder, port] = [temporaryFolder(), await freePort()];
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log warn;
worker_rlimit_nofile 32768;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream hermes {
    ${ports.map((each) => `server 127.0.0.1:${each} max_fails=0;`).join(' ')}
    keepalive 64;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://hermes;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 2s;
      proxy_buffering off;
      proxy_read_timeout 300s;
    }
  }
}
`,
  );
  const child = spawn(PROGRAM ?? 'nginx', ['-c', file, '-p', folder], { stdio: 'ignore' });
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  const base = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${base}/healthz`)).ok, 'nginx did not start');
  return {
    base,
    errors: () => countKinds(readFileSync(join(folder, 'error.log'), 'utf8')),
    async stop() {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
      process.off('exit', end);
    },
  };
}

function countKinds(log: string): string {
  const kinds = new Map<string, number>();
  for (const line of log.trimEnd().split('\n')) {
    const kind = /\[\w+\] [^:]*: (?:\*\d+ )?([^,]*)/.exec(line)?.[1] ?? line;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return [...kinds].map(([kind, count]) => `${count} × ${kind}`).join('; ');
}
