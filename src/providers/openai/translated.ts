import { createHash } from 'node:crypto';
import type { UpstreamTarget } from '../../contracts/exchange.ts';
import type { ChatRequest } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { isOthersModel } from './family.ts';

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
