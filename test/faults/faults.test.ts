import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { startInstance } from '../operations/instance.ts';
import { skipWithout, temporaryFolder } from '../services.ts';
import { fuzzRequests } from './fuzz-requests.ts';
import { feedGarbage } from './garbage-streams.ts';
import { runMachineFaults } from './machine-faults.ts';
import { createRandom } from './random.ts';

const SEED = Number(process.env.HERMES_SEED ?? 20_261_130);
const upstreamKey = 'sk-upstream-never-told';
const config = (url: string): object => ({ models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: url, api_key_env: 'UP_KEY' }] });

async function withApp(run: (app: RunningApp, upstream: Awaited<ReturnType<typeof createFakeUpstream>>) => Promise<void>): Promise<void> {
  const upstream = await createFakeUpstream({ strict: false });
  const app = await startApp(config(upstream.url), { env: { UP_KEY: upstreamKey } });
  try {
    await run(app, upstream);
  } finally {
    await app.stop();
    await upstream.close();
  }
}

describe(`bad input, seed ${SEED}`, () => {
  it('of clients makes no undocumented error, no hang, no stack, no leak', async () => {
    await withApp(async (app, upstream) => {
      const { sent, wrong, statuses } = await fuzzRequests(app.app.port, 1200, createRandom(SEED), upstreamKey);
      assert.deepEqual(wrong.slice(0, 5), []);
      assert.equal(sent, 1200);
      for (const status of [200, 400, 401, 404]) assert.ok((statuses[status] ?? 0) > 10, JSON.stringify(statuses));
      assert.equal((await app.chat({ messages: user('still here') })).status, 200);
      assert.equal(({} as { admin?: unknown }).admin, undefined);
      assert.equal((await app.fetch('/metrics')).text.match(/^hermes_requests_in_flight (\d+)$/m)?.[1], '0');
      await upstream.until(() => upstream.calls.every(({ closedAt }) => closedAt !== undefined));
    });
  });
  it('of upstreams ends every stream exactly once', async () => {
    await withApp(async (app, upstream) => {
      const wrong = await feedGarbage(app, upstream, 'm', 150, createRandom(SEED));
      assert.deepEqual(wrong.slice(0, 3), []);
    });
  });
});

describe('an upstream whose certificate is not good', () => {
  const openssl = ['/usr/bin/openssl', '/usr/local/bin/openssl'].find((file) => existsSync(file));
  it('is not talked to: the next one answers, and with none the caller gets a plain 502', { skip: openssl === undefined && 'openssl not found' }, async () => {
    const folder = temporaryFolder();
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    execFileSync(openssl as string, ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1', '-subj', '/CN=elsewhere'], {
      stdio: 'ignore',
    });
    let asked = 0;
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => {
      asked++;
      response.end('{}');
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const bad = { api_base: `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, api_key_env: 'UP_KEY' };
    const upstream = await createFakeUpstream();
    const app = await startApp(
      {
        models: [
          { id: 'alone', provider: 'openai', model_name: 'm', ...bad, failover: { max_attempts: 1 } },
          {
            id: 'pair',
            failover: {
              strategy: 'priority',
              upstreams: [
                { target: 'openai', model_name: 'm', ...bad },
                { target: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' },
              ],
            },
          },
        ],
        default_model: 'alone',
      },
      { env: { UP_KEY: upstreamKey } },
    );
    const alone = await app.chat({ messages: user('hi') });
    assert.equal(alone.status, 502);
    assert.doesNotMatch(alone.text, /certificate|127\.0\.0\.1|self.signed/i);
    assert.equal(saidIn(await app.chat({ model: 'pair', messages: user('hi') })), 'echo: hi');
    assert.equal(asked, 0);
    await app.stop();
    server.close();
    await upstream.close();
  });
});

describe('a disk that is full', () => {
  const skip = process.getuid?.() !== 0 && 'a small file system needs root';
  if (skip) process.stderr.write(`\n!!! SKIPPED: the full disk: ${skip}\n\n`);
  it('refuses turns in plain words, loses none that was answered, and goes on when there is room', { skip }, async (t) => {
    const folder = temporaryFolder();
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk], { stdio: 'pipe' });
    } catch {
      return t.skip('no file system can be mounted here');
    }
    const upstream = await createFakeUpstream();
    const instance = await startInstance(config(upstream.url), { env: { DATABASE_URL: `sqlite:///${disk}/hermes.db` } });
    const say = async (text: string): Promise<number> => {
      const response = await fetch(`${instance.base}/v1/chat`, {
        method: 'POST',
        body: JSON.stringify({ session_id: 'full', messages: user(text) }),
        headers: { authorization: `Bearer sk-test-3f9c1d7e5a2b48c6`, 'content-type': 'application/json' },
      });
      await response.arrayBuffer();
      return response.status;
    };
    try {
      const answered: string[] = [];
      if ((await say('before')) === 200) answered.push('before');
      try {
        writeFileSync(join(disk, 'junk'), Buffer.alloc(4 << 20));
      } catch {
        // Full is what it is to be.
      }
      const refused = await say(`large ${'x'.repeat(300_000)}`);
      assert.ok(refused === 503 || refused === 200, String(refused));
      if (refused === 200) answered.push('large');
      rmSync(join(disk, 'junk'));
      for (let tries = 0; (await say('after')) !== 200; tries++) {
        assert.ok(tries < 40, instance.log().slice(-800));
        await new Promise((done) => setTimeout(done, 250));
      }
      answered.push('after', 'last');
      assert.equal(await say('last'), 200);
      const seen = upstream
        .find('last')
        ?.body.messages.filter(({ role }) => role === 'user')
        .map(({ content }) => String(content).split(' ')[0]);
      assert.deepEqual(seen, answered);
    } finally {
      instance.kill('SIGKILL');
      await instance.exited;
      execFileSync('umount', ['-l', disk]);
      await upstream.close();
    }
  });
});

describe(`machines that fail, seed ${SEED}`, { ...skipWithout('redis', 'postgres'), timeout: 170_000 }, () => {
  it('lose and double no turn, do every action once, and leave nothing behind', async () => {
    const report = await runMachineFaults({ seed: SEED, faults: 3, clients: 5 });
    assert.deepEqual(report.wrong, []);
    assert.ok(report.acknowledged > 0 && report.refunds > 0, JSON.stringify(report));
    process.stdout.write(`# machine faults: ${JSON.stringify(report)}\n`);
  });
});
