import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';
import { startInstance } from '../operations/instance.ts';
import { temporaryFolder } from '../services.ts';
import { HEADERS } from './machine-world.ts';

let said = false;
/** False: a small file system can be mounted. Else why not; said once, loudly. */
export function smallDiskMissing(): string | false {
  const reason = process.getuid?.() !== 0 ? 'a small file system needs root' : mountable() ? false : 'no file system can be mounted here';
  if (reason && !said) process.stderr.write(`\n!!! SKIPPED: the full disk: ${reason}\n\n`);
  said = true;
  return reason;
}
function mountable(): boolean {
  const folder = temporaryFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'pipe' });
    execFileSync('umount', ['-l', folder]);
    return true;
  } catch {
    return false;
  }
}

/** A file system of 2 MB fills up under a gateway with the embedded database, and is emptied again. */
export async function fillDisk(): Promise<string[]> {
  const wrong: string[] = [];
  const disk = join(temporaryFolder(), 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk], { stdio: 'pipe' });
  const upstream = await createFakeUpstream();
  const models = [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }];
  const instance = await startInstance({ models }, { env: { DATABASE_URL: `sqlite:///${disk}/hermes.db` } });
  const say = async (text: string): Promise<number> => {
    const body = JSON.stringify({ session_id: 'full', messages: user(text) });
    const response = await fetch(`${instance.base}/v1/chat`, { method: 'POST', body, headers: HEADERS });
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
    if (refused === 200) answered.push('large');
    else if (refused !== 503) wrong.push(`a turn on a full disk: ${refused}`);
    rmSync(join(disk, 'junk'));
    let status = await say('after');
    for (let tries = 0; status !== 200 && tries < 40; tries++) {
      await sleep(250);
      status = await say('after');
    }
    if (status !== 200) wrong.push(`with room again: ${status}; ${instance.log().slice(-500)}`);
    answered.push('after', 'last');
    await say('last');
    const history = upstream.find('last')?.body.messages.filter(({ role }) => role === 'user') ?? [];
    const seen = history.map(({ content }) => String(content).split(' ')[0]);
    if (seen.join() !== answered.join()) wrong.push(`answered ${answered}; remembered ${seen}`);
    return wrong;
  } finally {
    instance.kill('SIGKILL');
    await instance.exited;
    execFileSync('umount', ['-l', disk]);
    await upstream.close();
  }
}
