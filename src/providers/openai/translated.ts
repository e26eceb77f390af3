import { createHash } from 'node:crypto';
import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatRequest } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { isOthersModel, takesEffort } from './family.ts';

export interface Fitted {
  request: ChatRequest;
  /** Of what the caller said: that which cannot be told here. */
  dropped: string[];
}

/** OpenAI's bound of `user`; Zhipu and Doubao take 128. A SHA-256 in hex is exactly as long. */
const MAX_USER = 64;
/** OpenAI's; DeepSeek and vLLM take more. */
const MOST_STOPS = 4;

/** A request that another form was translated into, as OpenAI's form takes it. What its own clients send is theirs, and goes as it is. */
export function fitTranslated(request: ChatRequest, target: UpstreamTarget): Fitted {
  const dropped: string[] = [];
  const fitted: ChatRequest = { ...request };
  const { user, stop } = request;
  if (user !== undefined && user.length > MAX_USER) fitted.user = createHash('sha256').update(user).digest('hex');
  if (Array.isArray(stop) && stop.length > MOST_STOPS && !isOthersModel(target)) {
    fitted.stop = stop.slice(0, MOST_STOPS);
    dropped.push('stop');
  }
  fitTools(fitted, dropped);
  fitThinking(fitted, target, dropped);
  return { request: fitted, dropped };
}

/** Tools that Anthropic runs itself stay behind, and with them the choice of one. */
function fitTools(fitted: ChatRequest, dropped: string[]): void {
  const { anthropic, tool_choice } = fitted;
  const native = isRecord(anthropic) && Array.isArray(anthropic.tools) ? anthropic.tools.filter(isRecord) : [];
  dropped.push(...native.map((tool) => `tools.${tool.type}`));
  const chosen = isRecord(tool_choice) && isRecord(tool_choice.function) ? tool_choice.function.name : undefined;
  const named = native.some((tool) => tool.name === chosen);
  if (!named && !(tool_choice === 'required' && native.length > 0 && !fitted.tools?.length)) return;
  delete fitted.tool_choice;
  dropped.push('tool_choice');
}

/** Every reasoning model knows these three; what is beyond is the most of them. */
const EFFORTS: Readonly<Record<string, string>> = { low: 'low', medium: 'medium', high: 'high', xhigh: 'high', max: 'high' };
/** Budgets up to which an effort is meant: the way back of what the provider `anthropic` makes of efforts. */
const BUDGETS = [
  { effort: 'low', most: 2048 },
  { effort: 'medium', most: 8192 },
  { effort: 'high', most: Number.POSITIVE_INFINITY },
] as const;

/** How much the model is to think, where it can be told. */
function fitThinking(fitted: ChatRequest, target: UpstreamTarget, dropped: string[]): void {
  const native = isRecord(fitted.anthropic) ? fitted.anthropic : {};
  const thinking = isRecord(native.thinking) ? native.thinking : undefined;
  const asked = isRecord(native.output_config) ? native.output_config.effort : undefined;
  const off = thinking?.type === 'disabled';
  const takes = takesEffort(target.modelName, Boolean(fitted.tools?.length));
  const effort = off ? undefined : effortOf(asked, thinking?.budget_tokens);
  if (takes && effort) {
    fitted.reasoning_effort = effort;
    return;
  }
  // A model that thinks anyway does what `adaptive` asks for.
  if (thinking && takes === off) dropped.push('thinking');
  if (asked !== undefined) dropped.push('output_config.effort');
}

function effortOf(asked: unknown, budget: unknown): string | undefined {
  const effort = typeof asked === 'string' ? EFFORTS[asked] : undefined;
  return effort ?? (typeof budget === 'number' ? BUDGETS.find(({ most }) => budget <= most)?.effort : undefined);
}
