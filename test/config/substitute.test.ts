// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${NAME}` in the configuration is what is tested.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { substitute } from '../../src/config/substitute.ts';

const env = { NAME: 'value', EMPTY: '', BLANK: ' \t', NESTED: '${NAME}' };
const filled = (text: string) => substitute(text, env);

test('${NAME} takes the value, anywhere in a text, once', () => {
  assert.deepEqual(filled('a-${NAME}-${NAME}'), { text: 'a-value-value' });
  assert.deepEqual(filled('${NESTED}'), { text: '${NAME}' }, 'what a variable holds is not read again');
  assert.deepEqual(filled('no dollar {NAME} $NAME'), { text: 'no dollar {NAME} $NAME' });
});
test('${NAME:-default} takes the default when it is unset, empty or blank', () => {
  for (const name of ['NOT_SET', 'EMPTY', 'BLANK']) assert.deepEqual(filled(`\${${name}:-http://x:1/a-b}`), { text: 'http://x:1/a-b' });
  assert.deepEqual(filled('${NAME:-other}'), { text: 'value' });
  assert.deepEqual(filled('${NOT_SET:-}'), { text: '' });
});
test('without a default, unset, empty and blank are refused by name and told apart', () => {
  assert.match(filled('${NOT_SET}').problem ?? '', /NOT_SET is not set/);
  assert.match(filled('${EMPTY}').problem ?? '', /EMPTY is empty/);
  assert.match(filled('${BLANK}').problem ?? '', /BLANK is blank/);
  assert.match(filled('${NOT_SET} ${EMPTY}').problem ?? '', /NOT_SET.*EMPTY/);
});
test('$${ is a plain ${, and other forms are refused', () => {
  assert.deepEqual(filled('$${NAME}'), { text: '${NAME}' });
  for (const wrong of ['${}', '${1A}', '${NAME', '${A B}', '${NAME:+x}', '${NAME-x}']) assert.match(filled(wrong).problem ?? '', /is not \$\{NAME\}/, wrong);
});
test('names of the object prototype are no variables', () => {
  assert.match(filled('${constructor}').problem ?? '', /constructor is not set/);
});
test('no problem ever holds the value of a variable', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 6 }), fc.string(), (secret, text) => {
      const { problem } = substitute(`${text}\${SECRET}\${NOT_SET}`, { SECRET: `s3cr3t-${secret}` });
      return problem === undefined || !problem.includes(`s3cr3t-${secret}`);
    }),
  );
});
