import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { startInstance } from '../operations/instance.ts';
import { temporaryFolder } from '../services.ts';
import { clockMissing, createClock } from './clock.ts';
import { HEADERS } from './machine-world.ts';

const OPENSSL = ['/usr/bin/openssl', '/usr/local/bin/openssl'].find((file) => existsSync(file));
export const opensslMissing = (): string | false => (OPENSSL === undefined ? 'openssl not found' : false);
const SILENT_MS = 700;

interface Certificate {
  key: Buffer;
  cert: Buffer;
}
/** A certificate authority, and what it signs. */
function createAuthority(folder: string): {
  file: string;
  sign(name: string, days?: number, env?: Record<string, string>): Certificate;
  alone(name: string): Certificate;
} {
  const openssl = (words: string, env: Record<string, string> = {}): void =>
    void execFileSync(OPENSSL ?? 'openssl', words.split(' '), { stdio: 'ignore', cwd: folder, env: { PATH: process.env.PATH, ...env } });
  const fresh = (file: string, subject: string): string => `-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ${file}.key -subj /CN=${subject}`;
  const read = (file: string): Certificate => ({ key: readFileSync(join(folder, `${file}.key`)), cert: readFileSync(join(folder, `${file}.pem`)) });
  openssl(`req -x509 ${fresh('authority', 'authority')} -out authority.pem -days 2`);
  let made = 0;
  return {
    file: join(folder, 'authority.pem'),
    sign(name, days = 2, env = {}) {
      const file = `leaf${made++}`;
      writeFileSync(join(folder, `${file}.ext`), `subjectAltName=${name}\n`);
      openssl(`req -new ${fresh(file, 'leaf')} -out ${file}.csr`);
      openssl(`x509 -req -in ${file}.csr -out ${file}.pem -days ${days} -CA authority.pem -CAkey authority.key -CAcreateserial -extfile ${file}.ext`, env);
      return read(file);
    },
    alone(name) {
      const file = `alone${made++}`;
      openssl(`req -x509 ${fresh(file, name)} -out ${file}.pem -days 2`);
      return read(file);
    },
  };
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const listening = async <T extends Server>(server: T): Promise<T> => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
};

/**
 * Upstreams that cannot prove who they are, or break off while they should, and one that can. No request reaches the former: alone
 * they are a plain 502 or 504 without a word about certificates, before another they are passed over.
 */
export async function meetBadCertificates(): Promise<{ kinds: number; wrong: string[] }> {
  const folder = temporaryFolder();
  const authority = createAuthority(folder);
  const upstream = await createFakeUpstream();
  const wrong: string[] = [];
  let asked = 0;
  const secure = (certificate: Certificate): Promise<Server> =>
    listening(
      createTlsServer(certificate, (_request, response) => {
        asked++;
        response.end('{}');
      }),
    );
  const good = await listening(
    createTlsServer(authority.sign('IP:127.0.0.1'), (request, response) => {
      let text = '';
      request.on('data', (data) => (text += data));
      request.on('end', () => response.setHeader('content-type', 'application/json').end(text === '' ? '{}' : JSON.stringify(COMPLETION)));
    }),
  );
  const servers: Record<string, Server> = {
    'self-signed': await secure(authority.alone('127.0.0.1')),
    'for another name': await secure(authority.sign('DNS:elsewhere.test')),
    'no TLS at all': await listening(createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'))),
    'closed in the handshake': await listening(createServer((socket) => socket.on('error', () => undefined).once('data', () => socket.destroy()))),
    'silent in the handshake': await listening(createServer((socket) => socket.on('error', () => undefined))),
  };
  // Valid for a day, two months ago.
  if (clockMissing() === undefined) servers.expired = await secure(authority.sign('IP:127.0.0.1', 1, past(folder)));
  const at = (server: Server): object => ({ api_base: `https://127.0.0.1:${portOf(server)}/v1`, api_key_env: 'UP_KEY' });
  const limits = { timeout_ms: SILENT_MS, first_token_timeout_ms: SILENT_MS };
  const names = Object.keys(servers);
  const models = names.flatMap((name, index) => {
    const bad = { model_name: 'm', ...at(servers[name] as Server) };
    const next = { target: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' };
    return [
      { id: `alone${index}`, provider: 'openai', ...bad, ...limits, failover: { max_attempts: 1 } },
      { id: `pair${index}`, ...limits, failover: { strategy: 'priority', upstreams: [{ target: 'openai', ...bad }, next] } },
    ];
  });
  const instance = await startInstance(
    { models: [...models, { id: 'good', provider: 'openai', model_name: 'm', ...at(good) }], default_model: 'good' },
    { env: { NODE_EXTRA_CA_CERTS: authority.file } },
  );
  const ask = async (model: string): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${instance.base}/v1/chat/completions`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify({ model, messages: user('hi') }),
    });
    return { status: response.status, text: await response.text() };
  };
  for (const [index, name] of names.entries()) {
    const alone = await ask(`alone${index}`);
    if (alone.status !== 502 && alone.status !== 504) wrong.push(`${name}, alone: ${alone.status} ${alone.text.slice(0, 200)}`);
    if (/certificate|127\.0\.0\.1|self.signed|altname|SSL|TLS/i.test(alone.text)) wrong.push(`${name}: says too much: ${alone.text.slice(0, 200)}`);
    const pair = await ask(`pair${index}`);
    if (pair.status !== 200 || !pair.text.includes('echo: hi')) wrong.push(`${name}, before another: ${pair.status} ${pair.text.slice(0, 200)}`);
  }
  const proven = await ask('good');
  if (proven.status !== 200) wrong.push(`an upstream that an authority of NODE_EXTRA_CA_CERTS vouches for: ${proven.status} ${proven.text.slice(0, 200)}`);
  if (asked > 0) wrong.push(`${asked} requests went to an upstream that could not prove who it is`);
  instance.kill('SIGKILL');
  for (const server of [good, ...Object.values(servers)]) server.close();
  await upstream.close();
  return { kinds: names.length, wrong };
}

const COMPLETION = {
  ...{ id: 'c', object: 'chat.completion', created: 1_790_000_000, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'proven' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
function past(folder: string): Record<string, string> {
  const clock = createClock(folder);
  clock.step(-60 * 86_400);
  return clock.env;
}
