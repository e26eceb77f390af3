import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, { copyFileSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import initSqlJs from 'sql.js';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import { createJournal, journalFile, readJournal } from '../../src/stores/cold/sqljs/journal.ts';
import { OPERATIONS } from '../../src/stores/cold/sqljs/operations.ts';
import { openStorage } from '../../src/stores/cold/sqljs/storage.ts';
import createSqljsStore from '../../src/stores/cold/sqljs.ts';
import { temporaryFolder, until } from '../services.ts';
import { type RecordedLog, recordLog, storeOptions, texts, turn } from './fixture.ts';

const WRITER = fileURLToPath(new URL('./writes-turns.ts', import.meta.url));
const CLOSER = fileURLToPath(new URL('./closes-at-once.ts', import.meta.url));
const database = (): string => join(temporaryFolder(), 'hermes.db');
const urlOf = (file: string): string => `sqlite:///${file}`;
const journals = (file: string): string[] => readdirSync(dirname(file)).filter((name) => name.includes('.journal-'));

async function opened(file: string, log: RecordedLog = recordLog()): Promise<ColdStore> {
  const store = createSqljsStore(storeOptions(urlOf(file), log));
  const isNew = !existsSync(file);
  await store.open();
  // A new database gets its file at once, behind the scenes.
  if (isNew) await until(() => existsSync(file) && journals(file).length === 1, 'no first checkpoint');
  return store;
}
/** A writer killed with SIGKILL once it has acknowledged `turns`. Gives the newest acknowledged version of each session. */
async function killedWriter(file: string, turns: number): Promise<Map<string, number>> {
  const child = spawn(process.execPath, ['--import', 'tsx', WRITER, urlOf(file), '20'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (data: Buffer) => {
    text += data.toString();
  });
  await until(() => text.split('\n').length > turns, 'the writer did not write', 20_000);
  child.kill('SIGKILL');
  await once(child, 'close');
  const acknowledged = new Map<string, number>();
  for (const line of text.slice(0, text.lastIndexOf('\n')).split('\n')) {
    const [session = '', version = ''] = line.split(' ');
    acknowledged.set(session, Math.max(acknowledged.get(session) ?? 0, Number(version)));
  }
  return acknowledged;
}

describe('the embedded database of a process that ends', () => {
  it('is closed whole although the last reply comes while it closes', async () => {
    const file = database();
    const child = spawn(process.execPath, ['--import', 'tsx', CLOSER, urlOf(file)], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (data: Buffer) => {
      text += data.toString();
    });
    const [code] = await once(child, 'close');
    assert.deepEqual([code, text], [0, 'closed']);
    assert.equal(existsSync(`${file}.lock`), false, 'its lock is given back');
    const store = await opened(file);
    assert.equal(await store.getValue('last'), 'word');
    await store.close();
  });
});

describe('the embedded database after a crash', () => {
  it('has every acknowledged turn of a process killed with SIGKILL, each once and whole, again and again', async () => {
    const file = database();
    for (let round = 0; round < 2; round++) {
      const acknowledged = await killedWriter(file, 400 + round * 100);
      const log = recordLog();
      const store = await opened(file, log);
      for (const [session, version] of acknowledged) {
        const read = await store.readSession('shop', session, 10_000);
        assert.ok(read && read.version >= version && read.version <= version + 1, `${session}: ${read?.version}, acknowledged ${version}`);
        const expected = Array.from({ length: read.version }, (_, i) => [`${session} turn ${i + 1}`, `re: ${session} turn ${i + 1}`]).flat();
        assert.deepEqual(texts(read.messages), expected);
      }
      await store.close();
    }
  });

  it('loses only the last turn when its record is cut at any byte', async () => {
    const [file, copy] = [database(), database()];
    const store = await opened(file);
    await store.appendTurn(turn('s', 0, 'first'));
    const [name = ''] = journals(file);
    const journal = join(dirname(file), name);
    const before = readFileSync(journal).length;
    await store.appendTurn(turn('s', 1, 'last'));
    const whole = readFileSync(journal);
    assert.ok(whole.length > before);
    const cutJournal = join(dirname(copy), name);
    for (let cut = before; cut <= whole.length; cut++) {
      copyFileSync(journal, cutJournal);
      truncateSync(cutJournal, cut);
      const { records, tornBytes, damaged } = readJournal(cutJournal);
      assert.deepEqual([records.length, tornBytes, damaged], cut === whole.length ? [2, 0, false] : [1, cut - before, false], `cut at ${cut}`);
    }
    for (const cut of [before, before + 1, before + 15, before + 16, whole.length - 1, whole.length]) {
      copyFileSync(file, copy);
      copyFileSync(journal, cutJournal);
      truncateSync(cutJournal, cut);
      const storage = await openStorage({ file: copy, owner: 'test' }, replay, () => {});
      const read = OPERATIONS.readSession.run(storage.db, ['shop', 's', 10]) as { version: number };
      assert.equal(read.version, cut === whole.length ? 2 : 1, `cut at ${cut} of ${whole.length}`);
      await storage.close();
      assert.deepEqual(journals(copy), []);
    }
    await store.close();
  });

  it('goes on after a torn tail, and the next crash loses nothing that came behind it', async () => {
    const file = database();
    const storage = await openStorage({ file, owner: 'one' }, replay, () => {});
    write(storage, turn('s', 0, 'first'));
    write(storage, turn('s', 1, 'torn'));
    const [name = ''] = journals(file);
    truncateSync(join(dirname(file), name), readFileSync(join(dirname(file), name)).length - 3);
    const second = await openStorage({ file, owner: 'one' }, replay, () => {});
    write(second, turn('s', 1, 'after the crash'));
    const third = await openStorage({ file, owner: 'one' }, replay, () => {});
    const read = OPERATIONS.readSession.run(third.db, ['shop', 's', 10]) as { messages: { message: { content: string } }[] };
    assert.deepEqual(
      read.messages.map(({ message }) => message.content),
      ['first', 're: first', 'after the crash', 're: after the crash'],
    );
    await third.close();
  });

  it('keeps a journal that the disk damaged in its middle, and says so', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'hermes.db');
    const journal = createJournal(journalFile(file, 1));
    journal.commit([1, 2, 3].map((number) => ({ number, text: `healthy\n[${number}]` })));
    journal.close();
    const bytes = readFileSync(journal.file);
    bytes[bytes.indexOf('[2]') + 1] = 0x39;
    writeFileSync(journal.file, bytes);
    const contents = readJournal(journal.file);
    assert.deepEqual([contents.records.length, contents.damaged], [1, true]);
    const notices: string[] = [];
    const storage = await openStorage({ file, owner: 'one' }, replay, (level) => notices.push(level));
    await storage.close();
    assert.ok(notices.includes('error'));
    assert.ok(existsSync(`${journal.file}.damaged`));
  });

  it('replays nothing twice when it dies between writing its file and removing the journal', async () => {
    const file = database();
    const store = await opened(file);
    await store.appendTurn(turn('s', 0, 'one'));
    await store.addToLedger('b', []);
    await store.setValue('k', 'old', undefined);
    const [name = ''] = journals(file);
    const kept = readFileSync(join(dirname(file), name));
    await store.setValue('k', 'new', undefined);
    await store.close();
    assert.deepEqual(journals(file), []);
    writeFileSync(join(dirname(file), name), kept);
    const again = await opened(file);
    assert.equal((await again.readSession('shop', 's', 10))?.total, 2);
    assert.equal(await again.getValue('k'), 'new');
    await again.close();
  });
});

describe('the embedded database', () => {
  it('forgets what the disk did not take, and goes on when it does', (context) => {
    const journal = createJournal(journalFile(database(), 1));
    journal.commit([{ number: 1, text: 'kept' }]);
    const full = context.mock.method(fs, 'fdatasyncSync', () => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    });
    syncBuiltinESMExports();
    assert.throws(() => journal.commit([{ number: 2, text: 'never acknowledged' }]), { code: 'ENOSPC' });
    full.mock.restore();
    syncBuiltinESMExports();
    journal.commit([{ number: 3, text: 'kept too' }]);
    journal.close();
    assert.deepEqual(
      readJournal(journal.file).records.map(({ text }) => text),
      ['kept', 'kept too'],
    );
  });

  it('is a genuine SQLite file after a checkpoint, and goes on as fast behind it', async () => {
    const file = database();
    const storage = await openStorage({ file, owner: 'one' }, replay, () => {});
    for (let i = 0; i < 5; i++) {
      write(storage, turn('s', i, `n${i}`));
      await storage.checkpoint();
    }
    assert.equal(storage.db.all('PRAGMA synchronous')[0]?.[0], 0, 'the pragmas are gone after an export');
    const { Database } = await initSqlJs();
    const copy = new Database(readFileSync(file));
    assert.equal(copy.exec('PRAGMA integrity_check')[0]?.values[0]?.[0], 'ok');
    assert.equal(copy.exec('SELECT COUNT(*) FROM messages')[0]?.values[0]?.[0], 10);
    assert.equal(journals(file).length, 1);
    await storage.close();
    assert.deepEqual(readdirSync(dirname(file)), ['hermes.db']);
  });

  it('writes turns while a checkpoint is under way, and has them after it', async () => {
    const file = database();
    const storage = await openStorage({ file, owner: 'one' }, replay, () => {});
    write(storage, turn('s', 0, 'before'));
    const running = storage.checkpoint();
    write(storage, turn('s', 1, 'meanwhile'));
    await running;
    const again = await openStorage({ file, owner: 'one' }, replay, () => {});
    assert.equal((OPERATIONS.readSession.run(again.db, ['shop', 's', 10]) as { version: number }).version, 2);
    await again.close();
  });

  it('has no trace of a deleted session in its files', async () => {
    const file = database();
    const store = await opened(file);
    await store.appendTurn(turn('s', 0, 'a secret'.repeat(2000)));
    await store.appendTurn(turn('other', 0, 'to be kept'));
    await store.close();
    assert.ok(readFileSync(file).includes('a secret'));
    const again = await opened(file);
    assert.equal(await again.deleteSession('shop', 's'), true);
    await again.close();
    assert.ok(!readFileSync(file).includes('secret'));
    assert.ok(readFileSync(file).includes('to be kept'));
    assert.deepEqual(journals(file), []);
  });

  it('refuses a second process by the name of the file and the pid', async () => {
    const file = database();
    const store = await opened(file);
    await assert.rejects(opened(file), (error: Error) => error.message.includes(file) && error.message.includes(String(process.pid)));
    assert.equal(await store.appendTurn(turn('s', 0, 'unharmed')), 1);
    await store.close();
    await (await opened(file)).close();
  });
  it('takes over the lock of a process that is gone, or whose number another has now', async () => {
    const file = database();
    for (const holder of [
      { pid: 2 ** 22 - 3, began: '1' },
      { pid: process.pid, began: 'long ago' },
      { pid: process.ppid, began: 'long ago' },
    ]) {
      writeFileSync(`${file}.lock`, JSON.stringify({ ...holder, host: hostname(), owner: 'x' }));
      await (await opened(file)).close();
    }
    writeFileSync(`${file}.lock`, 'no lock of ours');
    await (await opened(file)).close();
  });
  it('says which file it is that is no database', async () => {
    const file = database();
    writeFileSync(file, 'certainly not SQLite, but long enough to look like something '.repeat(40));
    await assert.rejects(opened(file), (error: Error) => error.message.includes(file));
    assert.equal(existsSync(`${file}.lock`), false);
  });
});

function replay(db: Parameters<(typeof OPERATIONS)['appendTurn']['run']>[0], text: string): void {
  const [name = '', args = ''] = [text.slice(0, text.indexOf('\n')), text.slice(text.indexOf('\n') + 1)];
  OPERATIONS[name as keyof typeof OPERATIONS].run(db, JSON.parse(args) as unknown[]);
}
function write(storage: Awaited<ReturnType<typeof openStorage>>, record: ReturnType<typeof turn>): void {
  OPERATIONS.appendTurn.run(storage.db, [record]);
  storage.journal([`appendTurn\n${JSON.stringify([record])}`]);
}
