import { HermesError } from '../contracts/errors.ts';
import type { Answer, Exchange, Inbound } from '../contracts/exchange.ts';
import type { GuardConfig, GuardDirection } from '../contracts/guards.ts';
import type { ContextRoom } from '../contracts/rooms.ts';
import type { ChunkStream } from '../contracts/stream.ts';
import type { Counter, Environment, Log } from '../contracts/telemetry.ts';
import { type ChatCompletion, type ChatRequest, messageText } from '../wire/chat.ts';
import { CompletionBuilder } from '../wire/collect.ts';
import { isRecord } from '../wire/json.ts';
import { share } from '../wire/share.ts';
import { sizeOf } from '../wire/streams.ts';
import { guardBody, type OutputGuard } from './guarded-answer.ts';
import { guardError, guardOriginal } from './guarded-error.ts';
import { guardRequest } from './guarded-request.ts';
import { GuardedStream } from './guarded-stream.ts';
import { broken, type Excess, refused, refusedAsTooLong } from './refusal.ts';
import type { GuardSet } from './rules.ts';
import { Size } from './size.ts';
import { Vault } from './vault.ts';
import { askWebhook, type FetchJson } from './webhook.ts';

export interface GuardParts {
  log: Log;
  environment: Environment;
  fetchJson: FetchJson;
  countMessage: ContextRoom['countMessage'];
  hits: Counter;
  /** What was found is told once a request, however many rounds and tries it has. */
  told: WeakMap<Inbound, Set<string>>;
}

interface Found {
  guard: GuardConfig;
  kind: string;
  excess?: Excess;
}

/** One try's way past the guards: its request, then its answer. Throws what refuses. */
export class GuardedExchange {
  readonly #parts: GuardParts;
  readonly #set: GuardSet;
  readonly #exchange: Exchange;
  readonly #flags = new Set<string>();
  #vault = new Vault();

  constructor(parts: GuardParts, set: GuardSet, exchange: Exchange) {
    this.#parts = parts;
    this.#set = set;
    this.#exchange = exchange;
  }

  /** The request as the model may see it; the same object when it may see all of it. */
  async input(): Promise<ChatRequest> {
    const { request } = this.#exchange;
    for (const guard of this.#set.promptSizes) {
      const excess = await this.#excessOf(guard, request);
      if (excess) this.#hit({ guard, kind: 'size', excess }, 'input');
    }
    let guarded = request;
    if (!this.#set.input.empty) {
      const result = guardRequest(request, this.#set.input, (hit) => this.#hit(hit, 'input'));
      guarded = result.request;
      this.#vault = result.vault;
    }
    for (const guard of this.#set.webhooks.input) await this.#ask(guard, 'input', guarded.messages.map(messageText).join('\n'));
    return guarded;
  }

  /** Changes the answer, or how its stream will be read. */
  async output(answer: Answer): Promise<void> {
    if (this.#flags.size > 0) this.#mark(answer);
    const { output, outputSizes, webhooks } = this.#set;
    if (answer.error) {
      answer.error = guardError(answer.error, this.#ofErrors());
      return;
    }
    if (output.empty && this.#vault.empty && outputSizes.length === 0 && webhooks.output.length === 0) return;
    const onHit = (hit: Found): void => this.#hit(hit, 'output');
    const guard: OutputGuard = { rules: output, vault: this.#vault, onHit, size: outputSizes.length > 0 ? new Size(outputSizes, onHit) : undefined };
    if (answer.stream) {
      guardOriginal(answer.facts, guard, this.#ofErrors());
      answer.stream = new GuardedStream(answer.stream, guard, this.#ofErrors());
      if (webhooks.output.length > 0) answer.stream = await this.#judged(answer.stream);
    } else {
      guardOriginal(answer.facts, guard, this.#ofErrors());
      guardBody(answer, guard);
      for (const webhook of webhooks.output) await this.#ask(webhook, 'output', textOf(answer.view));
    }
    if (this.#flags.size > 0) this.#mark(answer);
  }

  /** What fails may quote the question, and says why it failed: what is found in it goes, and nothing is refused for it. */
  #ofErrors(): OutputGuard {
    const onHit = ({ guard, kind }: Found): void =>
      guard.action === 'flag' ? this.#flag(guard, 'output', kind) : this.#tell(guard, 'output', 'redact', [kind]);
    return { rules: this.#set.output, vault: this.#vault, size: undefined, onHit };
  }

  #mark(answer: Answer): void {
    answer.headers = { ...answer.headers, 'x-hermes-guard': [...this.#flags].join(', ') };
  }

  async #excessOf({ max_characters, max_tokens }: GuardConfig, { messages }: ChatRequest): Promise<Excess | undefined> {
    if (max_characters !== undefined) {
      const characters = messages.reduce((sum, message) => sum + messageText(message).length, 0);
      if (characters > max_characters) return { size: characters, most: max_characters, unit: 'characters' };
    }
    if (max_tokens === undefined) return undefined;
    const { registry } = this.#exchange.config;
    const modelName = registry.models.get(this.#exchange.route?.model ?? '')?.upstreams[0]?.modelName ?? '';
    let tokens = 0;
    for (const message of messages) tokens += await this.#parts.countMessage(message, modelName);
    return tokens > max_tokens ? { size: tokens, most: max_tokens, unit: 'tokens' } : undefined;
  }

  /** A verdict is about the whole answer: the stream waits for it. */
  async #judged(stream: ChunkStream): Promise<ChunkStream> {
    const shared = share(stream);
    const reader = shared.open();
    const builder = new CompletionBuilder();
    let bytes = 0;
    for (let batch = await reader.read(); batch !== null; batch = await reader.read()) {
      bytes += sizeOf(batch);
      if (bytes > this.#exchange.config.server.max_event_bytes) {
        const error = new HermesError('overloaded', 'The answer is too large to be judged as a whole; ask for a shorter one.');
        await stream.cancel(error);
        throw error;
      }
      for (const { view } of batch.chunks) builder.add(view);
    }
    for (const guard of this.#set.webhooks.output) await this.#ask(guard, 'output', textOf(builder.build()));
    return shared.open();
  }

  async #ask(guard: GuardConfig, direction: GuardDirection, text: string): Promise<void> {
    if (text === '') return;
    const end = this.#exchange.trace.span(`guard ${guard.id}`, { direction });
    const verdict = await askWebhook(guard, { direction, text }, this.#exchange, this.#parts).catch((cause: unknown) => {
      this.#parts.log.warn({ request_id: this.#exchange.id, guard: guard.id, direction, err: cause }, 'a webhook guard gave no verdict');
      this.#tell(guard, direction, 'error', []);
      if (guard.on_error === 'block') throw this.#exchange.cancelled ?? broken(guard.id, cause);
      return 'allow' as const;
    });
    end({ verdict });
    if (verdict === 'block') this.#hit({ guard, kind: 'webhook' }, direction);
    else if (verdict === 'flag') this.#flag(guard, direction, 'webhook');
  }

  #hit({ guard, kind, excess }: Found, direction: GuardDirection): void {
    if (guard.action === 'flag') {
      this.#flag(guard, direction, kind);
      return;
    }
    this.#tell(guard, direction, guard.action, [kind]);
    if (guard.action === 'block') throw excess ? refusedAsTooLong(guard.id, direction, excess) : refused(guard.id, direction);
  }

  #flag(guard: GuardConfig, direction: GuardDirection, kind: string): void {
    this.#flags.add(guard.id);
    this.#tell(guard, direction, 'flag', [kind]);
  }

  /** The log and the metric, once a request; never what was found. */
  #tell(guard: GuardConfig, direction: GuardDirection, action: string, kinds: readonly string[]): void {
    const { inbound, id, background } = this.#exchange;
    if (background) return;
    const told = this.#parts.told.get(inbound) ?? new Set();
    this.#parts.told.set(inbound, told);
    const name = JSON.stringify([guard.id, direction, action]);
    if (told.has(name)) return;
    told.add(name);
    this.#parts.hits.inc({ guard: guard.id, action });
    if (action !== 'error') this.#parts.log.warn({ request_id: id, guard: guard.id, direction, action, found: kinds }, 'a guard found something');
  }
}

function textOf(view: unknown): string {
  if (!isRecord(view) || !Array.isArray(view.choices)) return '';
  return (view as ChatCompletion).choices
    .flatMap(({ message }) => [messageText(message), ...(message.tool_calls ?? []).map((call) => call.function?.arguments ?? JSON.stringify(call.custom))])
    .filter((text) => text !== '')
    .join('\n');
}
