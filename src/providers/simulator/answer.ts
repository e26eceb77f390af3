import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatChunk, ChatCompletion, Delta, FinishReason } from '../../wire/chat.ts';
import { DONE_EVENT, toEvent } from '../../wire/sse.ts';
import { type Options, toFailure } from './options.ts';
import type { Plan } from './plan.ts';

/** The pace of a stream: some fifty pieces a second, as a quick model has. */
const PACE_MS = 20;
/** A fixed time of birth: the same request has the same answer, byte for byte. */
const CREATED = 1_790_000_000;

export async function* streamOf(model: string, plan: Plan, options: Options, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  await begin(options, signal);
  const event = (delta: Delta, finish: FinishReason | null = null, more: Partial<ChatChunk> = {}): Uint8Array =>
    toEvent(
      JSON.stringify({ id: plan.id, object: 'chat.completion.chunk', created: CREATED, model, choices: [{ index: 0, delta, finish_reason: finish }], ...more }),
    );
  yield event({ role: 'assistant', content: plan.toolCalls.length > 0 ? null : '' });
  if (plan.reasoning !== '') yield event({ reasoning_content: plan.reasoning });
  for (const [index, content] of plan.pieces.entries()) {
    if (index === options.stall) await stall(signal);
    if (index === options.cut) return;
    await pause(options.slow ?? PACE_MS, signal);
    yield event({ content });
  }
  for (const [index, call] of plan.toolCalls.entries()) {
    yield event({ tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.function.name, arguments: '' } }] });
    yield event({ tool_calls: [{ index, function: { arguments: call.function.arguments } }] });
  }
  if (options.cut !== undefined) return;
  yield event({}, plan.finish);
  yield event({}, null, { choices: [], usage: plan.usage });
  yield DONE_EVENT;
}

export async function completionOf(model: string, plan: Plan, options: Options, signal: AbortSignal): Promise<Uint8Array> {
  await begin(options, signal);
  if (options.stall !== undefined) await stall(signal);
  if (options.slow !== undefined) await pause(options.slow * Math.max(1, plan.pieces.length), signal);
  const text = plan.pieces.join('');
  const completion: ChatCompletion = {
    id: plan.id,
    object: 'chat.completion',
    created: CREATED,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: plan.toolCalls.length > 0 ? null : text,
          ...(plan.reasoning === '' ? {} : { reasoning_content: plan.reasoning }),
          ...(plan.toolCalls.length > 0 ? { tool_calls: plan.toolCalls } : {}),
        },
        logprobs: null,
        finish_reason: plan.finish,
      },
    ],
    usage: plan.usage,
  };
  const bytes = Buffer.from(JSON.stringify(completion));
  return options.cut === undefined ? bytes : bytes.subarray(0, bytes.length / 2);
}

async function begin(options: Options, signal: AbortSignal): Promise<void> {
  if (options.fail !== undefined) throw toFailure(options.fail, options.retryAfter);
  if (options.stall === 0) await stall(signal);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal });
}

/** Until the caller gives up. */
function stall(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
