import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { complaint } from '../providers/anthropic-request-validator.ts';
import { DOORS, type Golden, Passage } from './golden-kit.ts';

const FOLDER = new URL('../fixtures/doors/', import.meta.url);
const CASES = ['image', 'length', 'results', 'text', 'thinking', 'tools'];

/** Three doors before two families of upstreams: text, streams, tools and their results, images, thinking, an answer cut by its length. */
for (const door of Object.keys(DOORS))
  for (const family of ['openai', 'anthropic'])
    describe(`golden: the door ${door} before ${family}`, () => {
      const folder = new URL(`${door}/`, FOLDER);
      const files = readdirSync(folder).filter((name) => name.startsWith(`${family}-`));
      test('all cases are there', () =>
        assert.deepEqual(
          files.map((name) => name.slice(family.length + 1, -'.json'.length)),
          CASES,
        ));
      for (const file of files) {
        const golden: Golden = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
        const name = file.replace('.json', '').replaceAll('-', ' ');
        test(`${name}: the request as its upstream gets it, the answer as its client gets it`, () => {
          const passage = new Passage(door, family, golden.request, false);
          const body = String(passage.call.body);
          assert.deepEqual(JSON.parse(body), golden.upstream_request);
          assert.deepEqual(passage.call.droppedParams, golden.dropped);
          if (family === 'anthropic') assert.equal(complaint(body), undefined);
          assert.deepEqual(passage.whole(golden.answer), golden.client_answer);
        });
        test(`${name}: the stream, cut at every byte`, async () => {
          const bytes = Buffer.from(golden.stream.join(''));
          const passage = () => new Passage(door, family, golden.request, true);
          assert.deepEqual((await passage().streamed([bytes])).split(/(?<=\n\n)/), golden.client_stream);
          const expected = golden.client_stream.join('');
          for (let at = 1; at < bytes.length; at++)
            assert.equal(await passage().streamed([bytes.subarray(0, at), bytes.subarray(at)]), expected, `cut at byte ${at}`);
          assert.equal(await passage().streamed([...bytes].map((byte) => Buffer.from([byte]))), expected, 'byte by byte');
        });
      }
    });
