import { createHash } from 'node:crypto';
import { type ChatMessage, type ChatRequest, messageText, type ToolCall, type Usage } from '../../wire/chat.ts';
import { isRecord, parseJson } from '../../wire/json.ts';
import { newestUserText, type Options, withoutDirectives } from './options.ts';
import { chooseTool, type ToolChoice } from './tools.ts';

/** What will be answered, before it is put into any shape. */
export interface Plan {
  id: string;
  reasoning: string;
  /** Cut into what a stream sends one by one. */
  pieces: string[];
  toolCalls: ToolCall[];
  finish: 'stop' | 'length' | 'tool_calls';
  usage: Usage;
}

const CHINESE = /[\u3400-\u9fff]/;
/** A Chinese phrase of up to four characters, or a word with its blank. */
const PIECES = /[\u3400-\u9fff，。！？：；、“”]{1,4}|[^\s\u3400-\u9fff，。！？：；、“”]+\s*|\s+/g;

export function toPlan(request: ChatRequest, options: Options): Plan {
  const hash = createHash('sha256').update(JSON.stringify(request.messages)).digest('hex');
  const chosen =
    options.tool && !hasResults(request)
      ? { name: options.tool.name, arguments: options.tool.arguments }
      : options.say === undefined
        ? toolOf(request)
        : undefined;
  const toolCalls = chosen && 'name' in chosen ? [toCall(chosen, hash)] : [];
  const text = toolCalls.length > 0 ? '' : (options.say ?? (chosen && 'missing' in chosen ? askFor(chosen.missing, request) : toText(request)));
  const all = text.match(PIECES) ?? [];
  const limit = request.max_tokens ?? all.length;
  const pieces = all.slice(0, limit);
  const reasoning = options.think ?? '';
  const answered = reasoning + pieces.join('') + toolCalls.map((call) => call.function.name + call.function.arguments).join('');
  return {
    id: `chatcmpl-sim-${hash.slice(0, 16)}`,
    reasoning,
    pieces,
    toolCalls,
    finish: toolCalls.length > 0 ? 'tool_calls' : pieces.length < all.length ? 'length' : 'stop',
    usage: toUsage(request, answered, reasoning),
  };
}

function toolOf(request: ChatRequest): ReturnType<typeof chooseTool> {
  return hasResults(request) ? undefined : chooseTool(request, withoutDirectives(newestUserText(request)));
}

function toCall(chosen: ToolChoice, hash: string): ToolCall {
  return { id: `call_${hash.slice(0, 20)}`, type: 'function', function: { name: chosen.name, arguments: chosen.arguments } };
}

/** Results of tools that came after the newest user message. */
function results(request: ChatRequest): ChatMessage[] {
  const newest = request.messages.findLastIndex((message) => message.role === 'user');
  return request.messages.slice(newest + 1).filter((message) => message.role === 'tool');
}
function hasResults(request: ChatRequest): boolean {
  return results(request).length > 0;
}

function toText(request: ChatRequest): string {
  const question = withoutDirectives(newestUserText(request));
  const chinese = CHINESE.test(question);
  const found = results(request).map((message) => describe(messageText(message), chinese));
  if (found.length > 0) return chinese ? `根据查询结果：${found.join('；')}。还有什么可以帮您？` : `Here is what I found: ${found.join('; ')}. Anything else?`;
  const earlier = request.messages.filter((message) => message.role === 'user').length - 1;
  const short = question.length > 60 ? `${question.slice(0, 60)}…` : question;
  if (question === '') return 'Hello! I am the simulated model of hermes-agent. Ask me anything.';
  if (chinese) return `您好，我是模拟模型。您说的是“${short}”。${earlier > 0 ? `这是我们对话的第 ${earlier + 1} 轮。` : ''}接入真实模型后，这里就是它的回答。`;
  return `I am the simulated model. You said: "${short}". ${earlier > 0 ? `This is turn ${earlier + 1} of our conversation. ` : ''}With a real model configured, its answer would stand here.`;
}

/** A result as a person would read it: JSON's members by name. */
function describe(result: string, chinese: boolean): string {
  let value: unknown;
  try {
    value = parseJson(result);
  } catch {
    return result;
  }
  const one = Array.isArray(value) ? value.at(-1) : value;
  if (!isRecord(one)) return String(result);
  return Object.entries(one)
    .map(([key, inner]) => `${key}${chinese ? '为' : ' is '}${typeof inner === 'string' ? inner : JSON.stringify(inner)}`)
    .join(chinese ? '，' : ', ');
}

function askFor(missing: readonly string[], request: ChatRequest): string {
  const names = missing.join(', ');
  return CHINESE.test(newestUserText(request)) ? `请告诉我 ${names}，我马上为您办理。` : `Please tell me ${names}, and I will see to it.`;
}

/** Four bytes a token, as good as any for a model that has no tokens. */
function toUsage(request: ChatRequest, answered: string, reasoning: string): Usage {
  const tokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);
  const prompt = request.messages.reduce((sum, message) => sum + 4 + tokens(messageText(message)), request.tools ? tokens(JSON.stringify(request.tools)) : 0);
  const completion = tokens(answered);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(reasoning === '' ? {} : { completion_tokens_details: { reasoning_tokens: tokens(reasoning) } }),
  };
}
