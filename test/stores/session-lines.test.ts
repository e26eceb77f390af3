import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { StoredMessage } from '../../src/contracts/cold-store.ts';
import { KnownSessions, toHead, toLine } from '../../src/stores/hot/redis/session-lines.ts';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { windowStart } from '../../src/wire/history-window.ts';

const toList = (version: number, stamp: string, system: StoredMessage[], messages: StoredMessage[]): string[] => [
  ...messages.map(toLine),
  toHead({ version, system }, stamp),
];
const say = (content: string): StoredMessage => ({ message: { role: 'user', content }, tokens: 1 });
const written = (stamp: string, messages: StoredMessage[]) => ({
  stamp,
  messages,
  lines: messages.map(toLine),
  head: toHead({ version: 0, system: [] }, stamp),
});

describe('what is known of a session in Redis', () => {
  const message = fc.record(
    { role: fc.constantFrom('user', 'assistant'), content: fc.string({ unit: 'binary' }) },
    { noNullPrototype: true },
  ) as fc.Arbitrary<ChatMessage>;
  const stored = fc.record({ message, tokens: fc.nat(99) }, { noNullPrototype: true });
  const turn = fc.record({ added: fc.array(stored, { maxLength: 3 }), most: fc.nat(6), here: fc.boolean(), system: fc.array(stored, { maxLength: 1 }) });

  it('is what was written, whoever wrote the turns and wherever the window stands', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 12 }), (turns) => {
        const known = new KnownSessions();
        let messages: StoredMessage[] = [];
        for (const [version, { added, most, here, system }] of turns.entries()) {
          const joined = [...messages, ...added];
          messages = joined.slice(windowStart(joined, most));
          const stamp = `s${version}`;
          if (here) known.add('key', version === 0 ? '' : `s${version - 1}`, { version, system }, written(stamp, added), most);
          const mine = known.get('key');
          if (mine?.stamp === stamp) assert.deepEqual(mine.session, { version, system, messages });
          assert.deepEqual(known.parse('key', toList(version, stamp, system, messages)), { version, system, messages });
          assert.equal(known.get('key')?.stamp, stamp);
          assert.deepEqual(known.get('key')?.session, { version, system, messages });
        }
      }),
    );
  });
  it('is parsed only where it is new', () => {
    const known = new KnownSessions();
    const first = known.parse('key', toList(1, 's1', [], [say('a'), say('b')]));
    const mine = say('c');
    known.add('key', 's1', { version: 2, system: [] }, written('s2', [mine]), 2);
    assert.deepEqual(known.get('key')?.session.messages, [say('b'), say('c')]);
    const next = known.parse('key', toList(3, 's3', [], [say('b'), say('c'), say('d')]));
    assert.equal(next.messages[0], first.messages[1]);
    assert.equal(next.messages[1], mine);
    assert.notEqual(known.parse('other', toList(3, 's3', [], [say('b')])).messages[0], next.messages[0]);
  });
  it('is forgotten where a turn was added to what is not known', () => {
    const known = new KnownSessions();
    known.parse('key', toList(1, 's1', [], [say('a')]));
    known.add('key', 'another', { version: 2, system: [] }, written('s2', [say('b')]), 50);
    assert.equal(known.get('key'), undefined);
    known.add('key', '', { version: 1, system: [] }, written('s3', [say('b')]), 50);
    assert.equal(known.get('key'), undefined, 'what was there before is not known');
  });
  it('is let go beyond its bound', () => {
    const known = new KnownSessions(4000);
    known.parse('small', toList(1, 's1', [], [say('a')]));
    known.parse('large', toList(1, 's1', [], [say('b'.repeat(2000))]));
    assert.equal(known.get('small')?.stamp, 's1');
    assert.equal(known.get('large'), undefined);
  });
  it('a list that is no session is refused', () => {
    for (const list of [[], [''], ['{}'], ['{"version":1}'], [toLine(say('a'))], ['{"role":"user"}', toHead({ version: 1, system: [] }, 's')]])
      assert.throws(() => new KnownSessions().parse('key', list), SyntaxError);
  });
});
