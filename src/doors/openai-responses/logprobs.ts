import { isRecord } from '../../wire/json.ts';

/** Chat completions' log probabilities of a text (`logprobs.content`) as this form has them: all members are always there. */
export function toLogprobs(logprobs: unknown): Record<string, unknown>[] {
  const tokens = isRecord(logprobs) && Array.isArray(logprobs.content) ? logprobs.content.filter(isRecord) : [];
  return tokens.map(({ top_logprobs, ...token }) => ({
    ...toToken(token),
    top_logprobs: (Array.isArray(top_logprobs) ? top_logprobs : []).filter(isRecord).map(toToken),
  }));
}

function toToken({ token, bytes, logprob }: Record<string, unknown>): Record<string, unknown> {
  return { token, bytes: bytes ?? [], logprob };
}
