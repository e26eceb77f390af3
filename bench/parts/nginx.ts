import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { anthropicSse, COMPLETION, MESSAGE, sse } from './answers.ts';
import { freePort, type Server, scratch, start } from './servers.ts';

/** A fast upstream: nginx answering a fixed completion, or the whole of a fixed stream in one packet (`/sse/…`). */
export async function startUpstream(): Promise<Server> {
  const port = await freePort();
  const folder = scratch();
  mkdirSync(join(folder, 'html'));
  const answers = { 'completion.json': COMPLETION, 'stream.txt': sse(), 'message.json': MESSAGE, 'events.txt': anthropicSse() };
  for (const [name, text] of Object.entries(answers)) writeFileSync(join(folder, 'html', name), text);
  const config = `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  client_max_body_size 64m; client_body_buffer_size 8m;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    # An internal redirect to a path turns the POST into the GET that static files want.
    location = /v1/chat/completions { error_page 405 =200 /completion.json; return 405; }
    location = /sse/v1/chat/completions { error_page 405 =200 /stream.txt; return 405; }
    location = /anthropic/v1/messages { error_page 405 =200 /message.json; return 405; }
    location = /anthropic-sse/v1/messages { error_page 405 =200 /events.txt; return 405; }
    location = /message.json { internal; default_type application/json; root ${folder}/html; }
    location = /events.txt { internal; types { } default_type text/event-stream; root ${folder}/html; }
    location = /completion.json { internal; default_type application/json; root ${folder}/html; }
    location = /stream.txt { internal; types { } default_type text/event-stream; root ${folder}/html; }
  }
}`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  return start('nginx', 'nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], port);
}

/** nginx in front of another server, as one would set it up for streams: connections are kept, answers are not buffered. */
export async function startNginxProxy(upstream: Server): Promise<Server> {
  const port = await freePort();
  const folder = scratch();
  const config = `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log crit;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  client_max_body_size 64m; client_body_buffer_size 8m;
  upstream model { server 127.0.0.1:${upstream.port}; keepalive 256; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_set_header Authorization "Bearer sk-upstream";
    }
  }
}`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  return start('nginx', 'nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], port);
}
