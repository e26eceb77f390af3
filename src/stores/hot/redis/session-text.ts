import type { StoredMessage } from '../../../contracts/cold-store.ts';
import type { HotSession } from '../../../contracts/hot-store.ts';
import { parseJson, stringifyJson } from '../../../wire/json.ts';

/**
 * A session as people can read it in redis-cli and as the script can cut it: JSON with one line a message. JSON texts hold no
 * raw line breaks, so the script appends and drops whole lines and never decodes a message (its JSON library turns `[]` into
 * `{}` and rounds numbers). Line 1 the version, 2 the system messages, 3 and the last are brackets.
 *
 *     {"version":7,
 *     "system":[…],
 *     "messages":[
 *     {"role":"user","tokens":12,"message":{…}},
 *     {"role":"assistant","tokens":60,"message":{…}}
 *     ]}
 */
export function toSessionText({ version, system, messages }: HotSession): string {
  return `{"version":${version},\n"system":${stringifyJson(system)},\n"messages":[\n${toLines(messages)}\n]}`;
}
export function toLines(messages: readonly StoredMessage[]): string {
  // The role comes first: the script reads it there.
  return messages.map(({ message, ...facts }) => stringifyJson({ role: message.role, ...facts, message })).join(',\n');
}

export function parseSessionText(text: string): HotSession {
  const { version, system, messages } = parseJson(text) as Omit<HotSession, 'messages'> & { messages: (StoredMessage & { role: string })[] };
  return { version, system, messages: messages.map(({ role: _, ...stored }) => stored) };
}
