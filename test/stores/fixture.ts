import type { StoredMessage, TurnRecord } from '../../src/contracts/cold-store.ts';
import type { Environment, Log, Metrics } from '../../src/contracts/telemetry.ts';
import type { ChatMessage, Role } from '../../src/wire/chat.ts';

export const environment: Environment = { now: () => Date.now(), uuid: () => crypto.randomUUID(), random: () => Math.random() };

export interface RecordedLog extends Log {
  lines: { level: string; message: string; fields: object }[];
}
export function recordLog(): RecordedLog {
  const lines: RecordedLog['lines'] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields });
  const log: RecordedLog = { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return log;
}
const noMetrics: Metrics = {
  counter: () => ({ inc: () => {} }),
  gauge: () => ({ set: () => {} }),
  histogram: () => ({ observe: () => {} }),
  text: async () => '',
  contentType: 'text/plain',
};
export function storeOptions(url: string, log: Log = recordLog()): { url: string; keyPrefix: string; log: Log; metrics: Metrics; environment: Environment } {
  return { url, keyPrefix: 'hermes:', log, metrics: noMetrics, environment };
}

export function stored(role: Role, content: string | null, extra: Partial<ChatMessage> = {}): StoredMessage {
  return { message: { role, content, ...extra }, tokens: 10 };
}
/** A user's message and its answer. */
export function exchange(text: string): StoredMessage[] {
  return [stored('user', text), stored('assistant', `re: ${text}`)];
}
export function turn(session: string, baseVersion: number, text: string, extra: Partial<TurnRecord> = {}): TurnRecord {
  const ids = { project: 'shop', session, at: Date.now(), requestId: crypto.randomUUID(), baseVersion, model: 'gpt-4o' };
  return { ...ids, system: [], messages: exchange(text), ...extra };
}
export function texts(messages: readonly StoredMessage[]): unknown[] {
  return messages.map(({ message }) => message.content);
}
