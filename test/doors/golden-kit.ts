import type { ServerResponse } from 'node:http';
import type { Asked, Door } from '../../src/contracts/door.ts';
import type { Answer, Exchange, UpstreamTarget } from '../../src/contracts/exchange.ts';
import type { Provider, UpstreamCall } from '../../src/contracts/provider.ts';
import type { Batch, ChunkStream } from '../../src/contracts/stream.ts';
import anthropicMessages from '../../src/doors/anthropic-messages.ts';
import openaiChat from '../../src/doors/openai-chat.ts';
import openaiResponses from '../../src/doors/openai-responses.ts';
import { replyStream } from '../../src/ingress/stream-reply.ts';
import { ExchangeAnswer } from '../../src/pipeline/answer.ts';
import anthropic from '../../src/providers/anthropic.ts';
import openai from '../../src/providers/openai.ts';
import { createRelay } from '../../src/upstream/create-relay.ts';
import { mendCompletion } from '../../src/upstream/mend.ts';
import { anthropicTarget } from '../providers/anthropic-targets.ts';

/** One request of a client, what its upstream gets, and both of its answers, whole and streamed. */
export interface Golden {
  request: Record<string, unknown>;
  upstream_request: unknown;
  dropped: string[];
  answer: unknown;
  client_answer: unknown;
  /** As the upstream sends it, event by event. */
  stream: string[];
  /** As the client gets it. */
  client_stream: string[];
}

export const DOORS: Readonly<Record<string, Door>> = { chat: openaiChat, messages: anthropicMessages, responses: openaiResponses };
const FAMILIES: Readonly<Record<string, { provider: Provider; target: UpstreamTarget }>> = {
  openai: { provider: openai, target: anthropicTarget({ id: 'gpt', provider: 'openai', modelName: 'gpt-4o', apiBase: 'https://api.openai.com/v1' }) },
  anthropic: { provider: anthropic, target: anthropicTarget({ modelName: 'claude-sonnet-4-5' }) },
};
const CREATED = 1_790_000_000;

/** What a case's request becomes, and what its answers become again. Pure: the real parts, without sockets. */
export class Passage {
  readonly call: UpstreamCall;
  readonly #door: Door;
  readonly #provider: Provider;
  readonly #asked: Asked & Pick<Exchange, 'wants'>;

  constructor(door: string, family: string, request: Record<string, unknown>, stream: boolean) {
    this.#door = DOORS[door] as Door;
    const { provider, target } = FAMILIES[family] as { provider: Provider; target: UpstreamTarget };
    this.#provider = provider;
    const body = { ...request, ...(stream ? { stream: true } : {}) };
    const entered = this.#door.enter(structuredClone(body), {}, () => 'fresh');
    this.call = provider.toUpstream(entered.request, target);
    const inbound = { form: this.#door.form, method: 'POST', path: '/', bytes: Buffer.from(JSON.stringify(body)), request: entered.request, remoteAddress: '' };
    const wants = { stream, form: this.#door.form, verbose: false, usage: entered.usage, commit: undefined };
    this.#asked = { id: 'r-1', ask: entered.ask, inbound, wants };
  }

  whole(answer: unknown): unknown {
    const completion = this.#provider.fromUpstream(Buffer.from(JSON.stringify(answer)), this.call);
    completion.created ||= CREATED;
    mendCompletion(completion);
    return JSON.parse(JSON.stringify(this.#door.toBody(completion, {}, this.#asked)));
  }

  /** The client's bytes of a stream that comes in these pieces. */
  async streamed(pieces: readonly Buffer[]): Promise<string> {
    const relay = createRelay({ provider: this.#provider, call: this.call, choices: 1, maxEventBytes: 100_000, created: CREATED });
    const answer: Answer = new ExchangeAnswer({ facts: {} });
    const left = [...pieces];
    const stream: ChunkStream = {
      read(): Batch | null {
        while (!relay.done) {
          const piece = left.shift();
          const batch = piece === undefined ? relay.end() : relay.push(piece);
          if (relay.failure) throw relay.failure;
          if (relay.usage) answer.facts.usage = relay.usage;
          if (relay.finishReason) answer.facts.finishReason = relay.finishReason;
          if (batch) return batch;
          if (piece === undefined) break;
        }
        return null;
      },
      cancel: () => undefined,
    };
    answer.stream = stream;
    let said = '';
    const take = (bytes: Uint8Array): boolean => {
      said += Buffer.from(bytes).toString('latin1');
      return true;
    };
    const response: Pick<ServerResponse, 'destroyed' | 'writableEnded'> & { write: typeof take; end: typeof take } = {
      destroyed: false,
      writableEnded: false,
      write: take,
      end: take,
    };
    const error = await replyStream({
      exchange: this.#asked as Exchange,
      answer,
      door: this.#door,
      response: response as unknown as ServerResponse,
      writeTimeoutMs: 1000,
      hermes: () => undefined,
      onFirstContent: () => undefined,
    });
    if (error) throw error;
    return Buffer.from(said, 'latin1').toString('utf8');
  }
}
