import { createHash } from 'node:crypto';
import type { ChatRequest } from '../../wire/chat.ts';

/** OpenAI's bound of `user`; Zhipu and Doubao take 128. A SHA-256 in hex is exactly as long. */
const MAX_USER = 64;

/** A request that another form was translated into, as OpenAI's form takes it. What its own clients send is theirs, and goes as it is. */
export function fitTranslated(request: ChatRequest): ChatRequest {
  const { user } = request;
  if (user === undefined || user.length <= MAX_USER) return request;
  return { ...request, user: createHash('sha256').update(user).digest('hex') };
}
