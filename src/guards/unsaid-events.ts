import type { Batch } from '../contracts/stream.ts';
import { parseJson } from '../wire/json.ts';
import { cutEvents, readEvent } from '../wire/sse.ts';
import { isClean, type OutputGuard } from './guarded-answer.ts';
import { changeTexts } from './walk.ts';

/**
 * Events of another form that say what the canonical one does not: sources, what a vendor's own tools ask and find. A client
 * of that form is relayed them as they came. Nothing of them can be changed or held here: once something is found, or may
 * still become something, no more is relayed, and the client gets what the canonical form says.
 */
export class UnsaidEvents {
  readonly #guard: OutputGuard;
  #relays = true;

  constructor(guard: OutputGuard) {
    this.#guard = guard;
  }

  /** May the batch be relayed as it came? */
  pass(batch: Batch): boolean {
    if (batch.form === 'openai-chat' || this.#guard.rules.empty) return true;
    if (this.#relays && batch.bytes !== undefined) this.#relays = unsaid(batch, batch.bytes).every((event) => this.#isClean(event));
    return this.#relays;
  }

  #isClean(event: Buffer): boolean {
    let said: unknown;
    try {
      said = parseJson(readEvent(event).data ?? 'null');
    } catch {
      return false;
    }
    return this.#isDecided(said) && isClean(said, this.#guard);
  }

  /** A piece of JSON may be half of what is looked for. */
  #isDecided(said: unknown): boolean {
    const { rules } = this.#guard;
    return !rules.changes || changeTexts(said, (text, json) => (json && rules.look(text).open < text.length ? '' : text)) === said;
  }
}

function unsaid({ chunks }: Batch, bytes: Uint8Array): Buffer[] {
  let at = 0;
  return cutEvents(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).filter((event) => {
    const raw = chunks[at]?.raw;
    if (raw === undefined || !event.equals(raw)) return true;
    at++;
    return false;
  });
}
