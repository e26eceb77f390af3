import type { KeptForm } from '../contracts/door.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { ResponseName } from '../contracts/rooms.ts';
import type { ChatMessage } from '../wire/chat.ts';

/** Answers that are read side by side: a long conversation speaks of many, and the store has others to serve. */
const AT_ONCE = 8;

/** The messages with the items that they speak of in their place: each from an answer that this caller was given. */
export async function resolveItems(
  exchange: Exchange,
  form: KeptForm,
  find: (name: ResponseName) => Promise<{ view: unknown } | undefined>,
): Promise<ChatMessage[]> {
  const { messages } = exchange.request;
  const references = form.references(messages);
  const nameOf = (id: string): ResponseName => ({
    project: exchange.caller?.project ?? '',
    session: form.sessionOf(id) ?? '',
    owner: exchange.principal?.id ?? '',
    id,
  });
  const answers = new Set<string>();
  for (const { item, answer } of references) {
    if (answer === undefined || form.sessionOf(answer) === undefined) throw notFound(item);
    answers.add(answer);
  }
  const items = new Map<string, unknown>();
  for (let at = 0; at < answers.size; at += AT_ONCE) {
    const read = [...answers].slice(at, at + AT_ONCE);
    for (const kept of await Promise.all(read.map((id) => find(nameOf(id))))) for (const [id, item] of form.itemsOf(kept?.view)) items.set(id, item);
    const missing = references.find(({ item, answer }) => answer !== undefined && read.includes(answer) && !items.has(item));
    if (missing) throw notFound(missing.item);
  }
  return form.resolve(messages, items);
}

/** Source of the first sentence: OpenAI's own error. */
function notFound(item: string): HermesError {
  return new HermesError(
    'not_found',
    `Item with id '${item.slice(0, 300)}' not found. Items are kept with store: true (the default), for the key that was given them; send the item itself, or leave it out.`,
    { param: 'input' },
  );
}
