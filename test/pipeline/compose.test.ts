import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Exchange } from '../../src/contracts/exchange.ts';
import type { ChunkStream } from '../../src/contracts/stream.ts';
import { generate } from '../../src/wire/streams.ts';
import type { LogLine } from '../app-kit.ts';
import { type AnyPlugin, brokenStream, completion, drain, makeExchange, pipelineOf, streaming, streamOf, whole } from './pipeline-kit.ts';

const ends = (log: string[], name: string): AnyPlugin => ({
  name,
  handle: (_exchange, next) => next(),
  onEnd: (_exchange, outcome) => void log.push(`${name}:${outcome.status}`),
});
const asStream = (stream: ChunkStream | undefined): ChunkStream => stream ?? assert.fail('no stream');

const answerFromCache = (exchange: Exchange): void => {
  exchange.answer = { body: completion('cached') };
};

describe('the onion', () => {
  it('sees the request on the way in and the answer on the way out', async () => {
    const log: string[] = [];
    const layer = (name: string): AnyPlugin => ({
      name,
      async handle(exchange, next) {
        log.push(`${name} in`);
        await next();
        log.push(`${name} out ${exchange.answer?.status}`);
      },
    });
    await pipelineOf([layer('a'), layer('b')], whole)(makeExchange());
    assert.deepEqual(log, ['a in', 'b in', 'b out 200', 'a out 200']);
  });

  it('answers without the inner layers when next is not called', async () => {
    const log: string[] = [];
    const answer = await pipelineOf([ends(log, 'outer'), { name: 'cache', handle: answerFromCache }, ends(log, 'inner')], whole)(makeExchange());
    assert.deepEqual((answer.view as { choices: unknown[] }).choices.length, 1);
    assert.deepEqual(log, ['outer:complete'], 'a layer that was not entered has no end');
  });

  it('never rejects: a failure below is an answer with an error', async () => {
    const seen: string[] = [];
    const answer = await pipelineOf(
      [
        {
          name: 'outer',
          async handle(exchange, next) {
            const inner = await next();
            seen.push(inner.error?.code ?? 'none', String(exchange.answer?.status));
          },
        },
      ],
      () => Promise.reject(new HermesError('upstream_timeout', 'too slow')),
    )(makeExchange());
    assert.deepEqual(seen, ['upstream_timeout', '504']);
    assert.equal(answer.error?.code, 'upstream_timeout');
  });

  it('refuses a second plain next and names fork', async () => {
    const lines: LogLine[] = [];
    const answer = await pipelineOf([{ name: 'twice', handle: async (_e, next) => [await next(), await next()] }], whole, lines)(makeExchange());
    assert.equal(answer.error?.code, 'plugin_error');
    assert.match(String((lines[0] as unknown as { err: Error }).err.message), /fork\(\)/);
  });

  it('fails a request by the name of the plugin that threw, without its words', async () => {
    const { error } = await pipelineOf([{ name: 'bad', handle: () => Promise.reject(new Error('a secret')) }], whole)(makeExchange());
    assert.equal(error?.code, 'plugin_error');
    assert.match(error?.message ?? '', /"bad"/);
    assert.doesNotMatch(error?.message ?? '', /secret/);
  });

  it('blames a plugin that neither calls next nor answers', async () => {
    const { error } = await pipelineOf([{ name: 'mute', handle: () => undefined }], whole)(makeExchange());
    assert.equal(error?.code, 'plugin_error');
  });

  it('passes an optional plugin over, before and after next', async () => {
    for (const when of ['before', 'after'] as const) {
      const lines: LogLine[] = [];
      const plugin: AnyPlugin = {
        name: 'maybe',
        optional: true,
        async handle(_exchange, next) {
          if (when === 'after') await next();
          throw new Error('never mind');
        },
      };
      const answer = await pipelineOf([plugin], whole, lines)(makeExchange());
      assert.equal(answer.status, 200, when);
      assert.equal(lines[0]?.message, 'plugin threw and was skipped');
      assert.ok((lines[0] as unknown as { request_id?: string }).request_id);
    }
  });
});

describe('forks', () => {
  it('have their own answer, and the ends of their own layers', async () => {
    const log: string[] = [];
    let tries = 0;
    const retry: AnyPlugin = {
      name: 'retry',
      async handle(exchange, next) {
        const first = await next(exchange.fork());
        log.push(`first:${first.status}`);
        exchange.answer = await next(exchange.fork());
      },
      onEnd: () => void log.push('retry end'),
    };
    const answer = await pipelineOf([retry, ends(log, 'inner')], async (exchange) => {
      if (++tries === 1) throw new HermesError('upstream_error', 'no');
      return whole(exchange);
    })(makeExchange());
    assert.equal(answer.status, 200);
    assert.deepEqual(log, ['inner:failed', 'first:502', 'inner:complete', 'retry end']);
  });

  it('run side by side', async () => {
    const race: AnyPlugin = { name: 'race', handle: async (exchange, next) => Promise.race([next(exchange.fork()), next(exchange.fork())]) };
    assert.equal((await pipelineOf([race], whole)(makeExchange())).status, 200);
  });

  it('may be begun from within the answer, after handle has returned', async () => {
    const log: string[] = [];
    const rounds: AnyPlugin = {
      name: 'rounds',
      handle(exchange, next) {
        exchange.answer = {
          stream: generate(async function* () {
            for (let round = 0; round < 3; round++) {
              const inner = asStream((await next(exchange.fork())).stream);
              for (let batch = await inner.read(); batch !== null; batch = await inner.read()) yield batch;
              log.push(`round ${round}`);
            }
          }),
        };
      },
      onEnd: (_exchange, outcome) => void log.push(`rounds:${outcome.status}`),
    };
    const answer = await pipelineOf([rounds, ends(log, 'inner')], streaming('x'))(makeExchange());
    assert.deepEqual((await drain(asStream(answer.stream))).words, ['x', 'x', 'x']);
    assert.deepEqual(log, ['inner:complete', 'round 0', 'inner:complete', 'round 1', 'inner:complete', 'round 2', 'rounds:complete']);
  });

  it('are cancelled with their parent, unless they are detached', () => {
    const exchange = makeExchange();
    const [bound, detached] = [exchange.fork(), exchange.fork({ detached: true })];
    exchange.cancel(new HermesError('client_closed', 'gone'));
    assert.equal(bound.cancelled?.code, 'client_closed');
    assert.equal(detached.cancelled, undefined);
  });
});

describe('the end of an answer', () => {
  it('comes inside out, before the reader of a stream learns of it', async () => {
    const log: string[] = [];
    const answer = await pipelineOf([ends(log, 'a'), ends(log, 'b'), ends(log, 'c')], streaming('one', 'two'))(makeExchange());
    const stream = asStream(answer.stream);
    while ((await stream.read()) !== null) assert.deepEqual(log, []);
    assert.deepEqual(log, ['c:complete', 'b:complete', 'a:complete']);
  });

  it('comes after the whole scope has unwound for a whole body: a late throw is seen by every end', async () => {
    const log: string[] = [];
    const late: AnyPlugin = {
      name: 'late',
      async handle(_exchange, next) {
        await next();
        throw new Error('too late');
      },
    };
    const answer = await pipelineOf([late, ends(log, 'session')], whole)(makeExchange());
    assert.equal(answer.error?.code, 'plugin_error');
    assert.deepEqual(log, ['session:failed']);
  });

  it('is failed for the inner layers when a layer throws after next while the answer streams', async () => {
    const log: string[] = [];
    const late: AnyPlugin = {
      name: 'late',
      async handle(_exchange, next) {
        await next();
        throw new Error('too late');
      },
    };
    const answer = await pipelineOf([late, ends(log, 'session')], streaming('one'))(makeExchange());
    assert.equal(answer.error?.code, 'plugin_error');
    assert.deepEqual(log, ['session:failed']);
  });

  it('becomes an error by a throw in onEnd, and the outer ends see it', async () => {
    for (const terminal of [whole, streaming('one')]) {
      const log: string[] = [];
      const store: AnyPlugin = { name: 'store', onEnd: () => Promise.reject(new HermesError('session_store_unavailable', 'away')) };
      const answer = await pipelineOf([ends(log, 'outer'), store], terminal)(makeExchange());
      const error = answer.stream ? (await drain(answer.stream)).error : answer.error;
      assert.equal((error as HermesError).code, 'session_store_unavailable');
      assert.deepEqual(log, ['outer:failed']);
    }
  });

  it('runs once when a stream is cancelled, and once when it fails', async () => {
    const log: string[] = [];
    const run = pipelineOf([ends(log, 'a')], streaming('one', 'two'));
    const cancelled = asStream((await run(makeExchange())).stream);
    await cancelled.read();
    await cancelled.cancel();
    await cancelled.cancel();
    assert.equal(await cancelled.read(), null);
    assert.deepEqual(log.splice(0), ['a:aborted']);

    const failing = pipelineOf([ends(log, 'a')], async (exchange) => {
      exchange.answer = { stream: brokenStream(new HermesError('upstream_error', 'cut'), 'one') };
      return exchange.answer as NonNullable<typeof exchange.answer> as never;
    });
    const { error } = await drain(asStream((await failing(makeExchange())).stream));
    assert.equal((error as HermesError).code, 'upstream_error');
    assert.deepEqual(log, ['a:failed']);
  });

  it('is complete for a client that leaves after the finish reason', async () => {
    const log: string[] = [];
    const stream = asStream((await pipelineOf([ends(log, 'a')], streaming('one'))(makeExchange())).stream);
    await stream.read();
    await stream.read();
    await stream.cancel();
    assert.deepEqual(log, ['a:complete']);
  });

  it('reaches the layers of a stream that an outer layer dropped for a body', async () => {
    const log: string[] = [];
    const replace: AnyPlugin = {
      name: 'replace',
      async handle(exchange, next) {
        await next();
        exchange.answer = { body: completion('another') };
      },
    };
    const answer = await pipelineOf([replace, ends(log, 'inner')], streaming('one'))(makeExchange());
    assert.equal(answer.status, 200);
    assert.deepEqual(log, ['inner:aborted']);
  });
});

describe('chunks', () => {
  const upper = (name: string, optional = false): AnyPlugin => ({
    name,
    optional,
    onChunk(chunk) {
      for (const { delta } of chunk.data.choices) if (delta?.content) delta.content = `${delta.content}${name}`;
      return chunk;
    },
  });

  it('pass the inner layers first', async () => {
    const answer = await pipelineOf([upper('A'), upper('B')], streaming('x'))(makeExchange());
    assert.deepEqual((await drain(asStream(answer.stream))).words, ['xBA']);
  });

  it('are dropped by undefined', async () => {
    const drop: AnyPlugin = { name: 'drop', onChunk: (chunk) => (chunk.data.choices[0]?.delta?.content === 'two' ? undefined : chunk) };
    const answer = await pipelineOf([drop], streaming('one', 'two', 'three'))(makeExchange());
    assert.deepEqual((await drain(asStream(answer.stream))).words, ['one', 'three']);
  });

  it('end the stream by name when a plugin throws on one, unless it is optional', async () => {
    const bad = (optional: boolean): AnyPlugin => ({
      name: 'bad',
      optional,
      onChunk() {
        throw new Error('no');
      },
    });
    const failed = await drain(asStream((await pipelineOf([bad(false)], streaming('one'))(makeExchange())).stream));
    assert.match((failed.error as HermesError).message, /"bad"/);
    const skipped = await drain(asStream((await pipelineOf([bad(true)], streaming('one', 'two'))(makeExchange())).stream));
    assert.deepEqual(skipped, { words: ['one', 'two'], error: undefined });
  });

  it('that are only watched keep their batch', async () => {
    const seen: string[] = [];
    const watch: AnyPlugin = { name: 'watch', watches: true, onChunk: (chunk) => void seen.push(chunk.view.choices[0]?.delta?.content ?? '·') as undefined };
    const source = streamOf('one', 'two');
    const first = await source.read();
    const answer = await pipelineOf([watch], async (exchange) => {
      exchange.answer = { stream: { read: () => (seen.length === 0 ? first : source.read()), cancel: () => undefined } };
      return exchange.answer as never;
    })(makeExchange());
    const stream = asStream(answer.stream);
    assert.equal(await stream.read(), first, 'the very same batch');
    await drain(stream);
    assert.deepEqual(seen, ['one', 'two', '·']);
  });
});

describe('cancellation', () => {
  it('tells each listener once, at once when it is late, and can be taken back', () => {
    const exchange = makeExchange();
    const log: string[] = [];
    exchange.onCancel(() => log.push('first'));
    exchange.onCancel(() => log.push('taken back'))();
    exchange.cancel(new HermesError('deadline_exceeded', 'late'));
    exchange.cancel(new HermesError('client_closed', 'gone'));
    exchange.onCancel((reason) => log.push(reason.code));
    assert.deepEqual(log, ['first', 'deadline_exceeded']);
    assert.equal(exchange.signal.aborted, true);
  });
});

describe('stopping a stream', () => {
  it('rejects nobody, whatever an end throws', async () => {
    const store: AnyPlugin = { name: 'store', onEnd: () => Promise.reject(new Error('away')) };
    const log: string[] = [];
    const stream = asStream((await pipelineOf([ends(log, 'outer'), store], streaming('one'))(makeExchange())).stream);
    await stream.read();
    await stream.cancel();
    assert.deepEqual(log, ['outer:failed']);
  });

  it('by a layer that throws late leaves every end run, also when one of them throws', async () => {
    const late: AnyPlugin = {
      name: 'late',
      async handle(_exchange, next) {
        await next();
        throw new Error('too late');
      },
    };
    const log: string[] = [];
    const store: AnyPlugin = { name: 'store', onEnd: () => Promise.reject(new Error('away')) };
    const answer = await pipelineOf([ends(log, 'limits'), late, store], streaming('one'))(makeExchange());
    assert.match(answer.error?.message ?? '', /"late"/);
    assert.deepEqual(log, ['limits:failed']);
  });
});
