import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { badFiles, FOLDER, messagesOf, SECRETS } from './bad-files.ts';

const files = badFiles();

test('there are at least 25 kinds of bad configuration', () => assert.ok(files.length >= 25, `${files.length}`));

for (const file of files) {
  test(`${file} is refused with exactly the messages beside it`, () => {
    const expected = `${FOLDER}${file.replace(/\.yaml$/, '.txt')}`;
    assert.ok(existsSync(expected), 'no .txt beside it');
    const messages = messagesOf(file);
    assert.equal(messages, readFileSync(expected, 'utf8'));
    for (const line of messages?.trimEnd().split('\n') ?? []) {
      assert.match(line, /^[\w-]+\.(yaml|next)(:\d+:\d+)?[ :]/, 'file, line and column come first');
      assert.doesNotMatch(line, /\n|\bat .*\(|Error:|undefined|\[object/);
    }
    for (const secret of SECRETS) assert.ok(!messages?.includes(secret), 'a value that may be a secret is shown');
  });
}
