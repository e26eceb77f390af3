// Starts what was built, on the Node that runs this, and has one chat with it: JSON, SSE and the exit.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'hermes-smoke-'));
const key = 'sk-smoke-0d9c4be17f2a4c55';
const child = spawn(
  process.execPath,
  [join(root, 'dist/src/main.js'), 'serve', '--config', join(root, 'config/demo.yaml'), '--port', '0', '--host', '127.0.0.1'],
  {
    cwd: folder,
    env: { PATH: process.env.PATH, API_KEY: key, DATABASE_URL: `sqlite:///${folder}/hermes.db` },
  },
);
let said = '';
for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
const timer = setTimeout(() => fail('it took more than 30 seconds'), 30_000);

function fail(why) {
  child.kill('SIGKILL');
  console.error(`smoke failed: ${why}\n${said}`);
  process.exit(1);
}
const expect = (condition, why) => condition || fail(why);

while (!/"msg":"listening"/.test(said)) {
  if (child.exitCode !== null) fail('it ended');
  await new Promise((done) => setTimeout(done, 50));
}
const address = /"address":"([^"]+)"/.exec(said)[1];
const chat = async (extra) => {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: '你好' }], ...extra }),
  });
  return { status: response.status, text: await response.text() };
};
const whole = await chat({});
expect(whole.status === 200 && JSON.parse(whole.text).choices[0].message.content, `JSON: ${whole.status} ${whole.text}`);
const stream = await chat({ stream: true });
expect(stream.status === 200 && stream.text.endsWith('data: [DONE]\n\n'), `SSE: ${stream.status} ${stream.text.slice(-200)}`);
child.kill('SIGTERM');
const [code] = await once(child, 'exit');
expect(code === 0, `exit ${code}`);
clearTimeout(timer);
rmSync(folder, { recursive: true, force: true });
console.log(`smoke: good on ${process.version}`);
