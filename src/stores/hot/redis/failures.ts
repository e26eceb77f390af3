/** Replies that mean that the server cannot serve, whatever is asked. */
const AWAY = /^(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|OOM|MISCONF|NOAUTH|WRONGPASS|NOREPLICAS|BUSY)\b/;

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}
export function meansAway(error: unknown): boolean {
  return !isReply(error) || AWAY.test(error.message);
}
/** A word for the log: codes only, since messages hold addresses. */
export function reasonOf(error: unknown): string {
  if (isReply(error)) return error.message.split(' ', 1)[0] ?? 'reply';
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return 'connection lost';
}
