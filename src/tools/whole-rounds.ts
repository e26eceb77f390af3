import type { Answer, AnswerInit } from '../contracts/exchange.ts';
import type { ChatCompletion, ToolCall, Usage } from '../wire/chat.ts';
import { collect } from '../wire/collect.ts';
import { addFacts, addUsage } from './facts.ts';
import { toFinishReason, toLawfulArguments } from './lawful.ts';
import type { Ask } from './streamed-rounds.ts';
import type { Taken, ToolTurn } from './turn.ts';

/** The rounds of a request whose answers are whole bodies, a streamed one up to `maxBytes`. Gives the very answer of the model when hermes had no part in it. */
export async function runWholeRounds(turn: ToolTurn, first: Answer, ask: Ask, maxBytes: number): Promise<Answer | AnswerInit> {
  const { facts } = first;
  let usage: Usage | undefined;
  for (let answer = first; ; answer = await ask.model()) {
    if (answer !== first) addFacts(facts, answer.facts);
    facts.toolCalls = turn.facts;
    if (answer.error) return Object.assign(answer, { facts });
    const completion = answer.stream ? await collect(answer.stream, maxBytes) : (answer.view as ChatCompletion);
    const choice = completion?.choices?.[0];
    if (!choice) return answer;
    usage = addUsage(usage, completion.usage);
    const taken = await turn.take(choice.message, answer.facts.maker);
    facts.waitedMs = (facts.waitedMs ?? 0) + turn.takeWaited();
    if (!taken.over) continue;
    if (answer === first && isAsItCame(completion, taken.calls)) return answer;
    if (usage) facts.usage = usage;
    const { status, headers, holdFinish } = answer;
    return { status, headers, holdFinish, facts, body: toBody(completion, taken, usage) };
  }
}

/** What the client gets: the last round's message with its own calls, and the usage of all rounds. */
function toBody(last: ChatCompletion, taken: Taken & { over: true }, usage: Usage | undefined): ChatCompletion {
  const [choice, ...others] = last.choices;
  const { tool_calls: _calls, content, ...message } = { ...choice?.message, ...taken.message };
  const { calls } = taken;
  const finish_reason = toFinishReason(choice?.finish_reason, calls.length);
  const shown = calls.map((call) => ({ ...call, function: { ...call.function, arguments: toLawfulArguments(call.function.arguments) } }));
  const whole = { ...message, content: content ?? null, ...(calls.length > 0 ? { tool_calls: shown } : {}) };
  return { ...last, choices: [{ index: 0, ...choice, finish_reason, message: whole }, ...others], ...(usage ? { usage } : {}) };
}

/** A turn that its log alone has ended: nobody was asked. */
export function toLoggedBody(id: string, created: number, taken: Taken & { over: true }): ChatCompletion {
  return toBody({ id, object: 'chat.completion', created, model: '', choices: [] }, taken, undefined);
}

function isAsItCame({ choices }: ChatCompletion, calls: readonly ToolCall[]): boolean {
  const choice = choices[0];
  const there = choice?.message.tool_calls ?? undefined;
  if (there !== undefined && (there.length === 0 || there.length !== calls.length)) return false;
  return toFinishReason(choice?.finish_reason, calls.length) === choice?.finish_reason && calls.every((call) => call.function.arguments.trim() !== '');
}
