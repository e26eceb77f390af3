import type { Chunk } from '../contracts/stream.ts';
import type { ChatChunk } from './chat.ts';
import { stringifyJson } from './json.ts';

/** The members of a chunk that says nothing but a piece of text. */
const PLAIN_MEMBERS = 5;
const PLAIN_CHOICE_MEMBERS = 4;

/**
 * A stream's chunks as events in OpenAI's form, many in one buffer. Translated answers are mostly pieces of text under one
 * head: only the text is serialised anew for each. One writer a stream.
 */
export class ChatEventWriter {
  #head: Pick<ChatChunk, 'id' | 'created' | 'model'> | undefined;
  #opening = '';

  write(chunks: readonly Chunk[]): Uint8Array {
    const parts: Uint8Array[] = [];
    let text = '';
    for (const chunk of chunks) {
      const raw = chunk.form === 'openai-chat' ? chunk.raw : undefined;
      if (raw === undefined) {
        text += this.#toText(chunk.view);
        continue;
      }
      if (text !== '') parts.push(Buffer.from(text));
      text = '';
      parts.push(raw);
    }
    if (text !== '') parts.push(Buffer.from(text));
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  #toText(chunk: Readonly<ChatChunk>): string {
    const said = plainText(chunk);
    return said === undefined
      ? `data: ${stringifyJson(chunk)}\n\n`
      : `${this.#openingOf(chunk)}${JSON.stringify(said)}},"logprobs":null,"finish_reason":null}]}\n\n`;
  }

  #openingOf({ id, object, created, model }: Readonly<ChatChunk>): string {
    const head = this.#head;
    if (head === undefined || head.id !== id || head.created !== created || head.model !== model) {
      this.#head = { id, created, model };
      this.#opening = `data: ${JSON.stringify({ id, object, created, model }).slice(0, -1)},"choices":[{"index":0,"delta":{"content":`;
    }
    return this.#opening;
  }
}

/** The text of a chunk that has nothing else in it, its members in the order in which a translation makes them. */
function plainText(chunk: Readonly<ChatChunk>): string | undefined {
  const choice = chunk.choices?.length === 1 ? chunk.choices[0] : undefined;
  const delta = choice?.delta;
  if (
    choice === undefined ||
    delta === undefined ||
    typeof delta.content !== 'string' ||
    choice.index !== 0 ||
    choice.finish_reason !== null ||
    choice.logprobs !== null
  )
    return undefined;
  const plain = size(delta) === 1 && size(choice) === PLAIN_CHOICE_MEMBERS && size(chunk) === PLAIN_MEMBERS;
  return plain && typeof chunk.created === 'number' && chunk.object === 'chat.completion.chunk' ? delta.content : undefined;
}

function size(value: object): number {
  let members = 0;
  for (const _member in value) members++;
  return members;
}
