import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Exchange } from '../../src/contracts/exchange.ts';
import type { Chunk } from '../../src/contracts/stream.ts';
import type { Terminal } from '../../src/pipeline/compose.ts';
import type { ChatCompletion } from '../../src/wire/chat.ts';
import { type LogLine, saidIn, startApp, user } from '../app-kit.ts';
import { type AnyPlugin, completion, drain, makeExchange, pipelineOf, streaming, whole } from './pipeline-kit.ts';

const ends = (log: string[], name: string): AnyPlugin => ({
  name,
  handle: (_exchange, next) => next(),
  onEnd: (_exchange, outcome) => void log.push(`${name}:${outcome.status}`),
});
const answerFromCache = (exchange: Exchange): void => {
  exchange.answer = { body: completion('cached') };
};

describe('a layer that ends before what it called', () => {
  const slow: Terminal = async (exchange) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return whole(exchange);
  };
  const slowStream: Terminal = async (exchange) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return streaming('a', 'b')(exchange);
  };
  const hasty = (handle: AnyPlugin['handle'], optional = false): AnyPlugin => ({ name: 'hasty', optional, ...(handle ? { handle } : {}) });
  const slowLayer = (log: string[]): AnyPlugin => ({
    ...ends(log, 'inner'),
    async handle(_exchange, next) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      await next();
    },
  });

  it('by a throw: nothing inside outlives it, and every end runs once', async () => {
    for (const terminal of [slow, slowStream]) {
      const log: string[] = [];
      const fails: AnyPlugin['handle'] = (_exchange, next) => Promise.all([next(), Promise.reject(new Error('audit down'))]);
      const answer = await pipelineOf([ends(log, 'outer'), hasty(fails), slowLayer(log)], terminal)(makeExchange());
      assert.equal(answer.error?.code, 'plugin_error');
      assert.equal(answer.stream, undefined);
      assert.deepEqual(log, ['inner:failed', 'outer:failed']);
    }
  });

  it('by a throw that is passed over: the answer is what stood inside', async () => {
    const log: string[] = [];
    const fails: AnyPlugin['handle'] = (_exchange, next) => Promise.all([next(), Promise.reject(new Error('audit down'))]);
    const answer = await pipelineOf([hasty(fails, true), slowLayer(log)], slow)(makeExchange());
    assert.equal(answer.error, undefined);
    assert.deepEqual(log, ['inner:complete']);
  });

  it('by not waiting: it is waited for', async () => {
    const log: string[] = [];
    const answer = await pipelineOf([hasty((_exchange, next) => void next()), slowLayer(log)], slow)(makeExchange());
    assert.equal((answer.view as ChatCompletion).choices[0]?.message.content, 'whole');
    assert.deepEqual(log, ['inner:complete']);
  });

  it('by an answer of its own, which stands', async () => {
    for (const terminal of [slow, slowStream]) {
      const log: string[] = [];
      const own: AnyPlugin['handle'] = (exchange, next) => {
        void next();
        answerFromCache(exchange);
      };
      const answer = await pipelineOf([hasty(own), slowLayer(log)], terminal)(makeExchange());
      assert.equal((answer.view as ChatCompletion).choices[0]?.message.content, 'cached');
      assert.equal(log.length, 1);
    }
  });

  it('by calling next when all is over: nothing begins any more, and the log names it', async () => {
    const lines: LogLine[] = [];
    const log: string[] = [];
    const late: AnyPlugin['handle'] = (exchange, next) => {
      setTimeout(next, 5);
      answerFromCache(exchange);
    };
    await pipelineOf([hasty(late), slowLayer(log)], whole, lines)(makeExchange());
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.deepEqual([log, lines.length], [[], 1]);
    assert.match(String((lines[0] as unknown as { err: Error }).err.message), /"hasty" called next\(\) after its handle had ended/);
  });
});

it('fails a request by the name of the plugin whose state cannot be made, unless it is optional', async () => {
  const log: string[] = [];
  const broken = (optional: boolean): AnyPlugin => ({
    ...ends(log, 'broken'),
    optional,
    local: () => {
      throw new Error('boom');
    },
  });
  const failed = await pipelineOf([ends(log, 'outer'), broken(false), ends(log, 'inner')], whole)(makeExchange());
  assert.match(failed.error?.message ?? '', /"broken"/);
  const passed = await pipelineOf([broken(true), ends(log, 'inner')], whole)(makeExchange());
  assert.equal(passed.error, undefined);
  assert.deepEqual(log, ['outer:failed', 'inner:complete'], 'a layer that was not entered has no end');
});

describe('a chunk that a plugin makes itself', () => {
  const giving = (give: (chunk: Chunk) => unknown): AnyPlugin => ({ name: 'maker', onChunk: (chunk) => give(chunk) as Chunk });
  const read = async (plugin: AnyPlugin): Promise<{ words: string[]; error: unknown }> => {
    const answer = await pipelineOf([plugin], streaming('a', 'b'))(makeExchange());
    return drain(answer.stream ?? assert.fail('no stream'));
  };

  it('counts by its data', async () => {
    const shout = ({ data }: Chunk): object => ({
      data: { ...data, choices: data.choices.map((choice) => ({ ...choice, delta: { content: choice.delta?.content?.toUpperCase() } })) },
    });
    assert.deepEqual((await read(giving(shout))).words, ['A', 'B']);
    assert.deepEqual((await read(giving((chunk) => ({ ...chunk, data: chunk.data })))).words, ['a', 'b']);
  });

  it('is the plugin’s error when it has none', async () => {
    const { error } = await read(giving(() => 'text'));
    assert.match(String(error), /"maker"/);
  });
});

describe('hooks that setup gives and hooks beside it', () => {
  const COUNTS = `export default {
    name: 'counts', watches: true,
    async handle(exchange, next) { await next(); exchange.answer.headers['x-name'] = this.name; },
    setup() { let seen = 0; return { onChunk() { seen++; }, onEnd() { if (seen > 0) seen = 0; } }; },
  };`;

  it('hold together', async () => {
    const app = await startApp({}, { files: { 'counts.mjs': COUNTS } });
    const reply = await app.chat({ messages: user('[[say all of it]]'), stream: true });
    assert.equal(saidIn(reply), 'all of it');
    assert.equal(reply.headers.get('x-name'), 'counts');
    await app.stop();
  });
});

it('a metric that Prometheus could not read stops the start, its plugin named', async () => {
  for (const made of ["counter('bad name', 'x')", "gauge('g', 'x', ['bad-label'])", "counter('c_total', '')"])
    await assert.rejects(
      startApp({}, { files: { 'metric.mjs': `export default { name: 'metric', setup(hermes) { hermes.metrics.${made}; } };` } }),
      /metric\.mjs.*metric/s,
    );
});
