import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { UpstreamTarget } from '../../src/contracts/exchange.ts';
import type { UpstreamCall } from '../../src/contracts/provider.ts';
import provider from '../../src/providers/anthropic.ts';
import type { ChatRequest } from '../../src/wire/chat.ts';
import { parseJson } from '../../src/wire/json.ts';
import { cutEvents, SseSplitter } from '../../src/wire/sse.ts';
import { upstreamFinishOf } from '../../src/wire/upstream-finish.ts';
import { complaint } from './anthropic-request-validator.ts';
import { anthropicTarget } from './anthropic-targets.ts';

interface RequestCase {
  target?: Partial<UpstreamTarget>;
  request: ChatRequest | string;
  url: string;
  headers: Record<string, string>;
  body: unknown;
  dropped: string[];
}
interface AnswerCase {
  request?: Partial<ChatRequest>;
  answer: unknown;
  completion: unknown;
  upstream_finish_reason?: string;
}
interface StreamCase {
  request?: Partial<ChatRequest>;
  stream: string;
  chunks: unknown[];
  upstream_finish_reason?: string;
}

function cases<T>(folder: string): [string, T][] {
  const directory = new URL(`../fixtures/anthropic/${folder}/`, import.meta.url);
  return readdirSync(directory).map((file) => [file.replace('.json', '').replaceAll('-', ' '), JSON.parse(readFileSync(new URL(file, directory), 'utf8'))]);
}
function callFor(request: Partial<ChatRequest> = {}, stream = false): UpstreamCall {
  return provider.toUpstream({ messages: [{ role: 'user', content: 'hi' }], ...(stream ? { stream } : {}), ...request }, anthropicTarget());
}

describe('golden: an OpenAI request as Anthropic gets it', () => {
  for (const [name, { target = {}, request, url, headers, body, dropped }] of cases<RequestCase>('requests')) {
    test(name, () => {
      const before = JSON.stringify(request);
      const call = provider.toUpstream(typeof request === 'string' ? (parseJson(request) as ChatRequest) : request, anthropicTarget(target));
      const text = String(call.body);
      assert.equal(text, typeof body === 'string' ? body : JSON.stringify(body));
      assert.deepEqual({ url: call.url, headers: call.headers, dropped: call.droppedParams }, { url, headers, dropped });
      assert.equal(complaint(text, target.apiVersion), undefined);
      assert.equal(JSON.stringify(request), before, 'the request was changed');
    });
  }
});

describe('golden: an Anthropic answer as OpenAI clients get it', () => {
  for (const [name, { request, answer, completion, upstream_finish_reason }] of cases<AnswerCase>('answers')) {
    test(name, () => {
      const got = provider.fromUpstream(Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer)), callFor(request));
      assert.deepEqual(JSON.parse(JSON.stringify(got)), completion);
      assert.equal(upstreamFinishOf(got), upstream_finish_reason);
    });
  }
});

function readAll(pieces: Buffer[], call: UpstreamCall): { chunks: unknown[]; finish: string | undefined; ended: boolean } {
  const splitter = new SseSplitter();
  const reader = provider.createReader(call);
  const chunks: unknown[] = [];
  let finish: string | undefined;
  let ended = false;
  const runs = [...pieces.map((piece) => splitter.push(piece)), splitter.flush()];
  for (const run of runs) {
    for (const event of run ? cutEvents(run) : []) {
      const chunk = reader.read(event);
      if (chunk === 'end') ended = true;
      else if (chunk) {
        const { id, object, created, model, ...rest } = chunk;
        assert.deepEqual([id, object, created, model], ['msg_01', 'chat.completion.chunk', 0, 'claude-sonnet-4-5']);
        finish ??= upstreamFinishOf(chunk);
        chunks.push(JSON.parse(JSON.stringify(rest)));
      }
    }
  }
  return { chunks, finish, ended };
}

describe('golden: an Anthropic stream, cut at every byte', () => {
  for (const [name, { request, stream, chunks, upstream_finish_reason }] of cases<StreamCase>('streams')) {
    test(name, () => {
      const call = callFor(request, true);
      const bytes = Buffer.from(stream);
      assert.deepEqual(readAll([bytes], call), { chunks, finish: upstream_finish_reason, ended: true });
      const expected = JSON.stringify(chunks);
      for (let at = 1; at < bytes.length; at++) {
        const got = readAll([bytes.subarray(0, at), bytes.subarray(at)], call);
        assert.equal(JSON.stringify(got.chunks), expected, `cut at byte ${at}`);
        assert.ok(got.ended, `cut at byte ${at}: no end`);
      }
    });
  }
});
