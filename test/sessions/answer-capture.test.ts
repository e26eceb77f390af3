import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Exchange } from '../../src/contracts/exchange.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import { AnswerCapture } from '../../src/sessions/answer-capture.ts';
import { stringifyJson } from '../../src/wire/json.ts';

it('a relayed stream is stored with its long integers to the digit', async () => {
  const event = (delta: string): string => `data: {"id":"c","choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`;
  const bytes = Buffer.from(event('{"content":"42","order":9007199254740993}') + event('{"content":" it is"}'));
  const batches: (Batch | null)[] = [{ bytes, marked: false, chunks: [], form: 'openai-chat' }, null];
  const capture = new AnswerCapture(1000);
  const stream = capture.watch({ read: () => batches.shift() ?? null, cancel: () => undefined });
  while ((await stream.read()) !== null);
  const exchange = { answer: { status: 200 }, wants: { stream: true } } as Exchange;
  const taken = capture.take(exchange, { status: 'complete' });
  assert.equal(stringifyJson(taken?.message), '{"role":"assistant","content":"42 it is","order":9007199254740993}');
});
