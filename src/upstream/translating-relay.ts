import { HermesError } from '../contracts/errors.ts';
import type { Batch, Chunk, Form, Reader } from '../contracts/stream.ts';
import { toChunk, translatedBatch } from '../wire/batch.ts';
import { cutEvents } from '../wire/sse.ts';
import { Relay, type RelayOptions } from './relay.ts';

/** An upstream that speaks another form: its reader sees every event in order; the bytes go along for clients of that form. */
export class TranslatingRelay extends Relay {
  readonly #reader: Reader;
  readonly #form: Form;
  readonly #created: number;

  constructor(options: RelayOptions) {
    super(options);
    this.#reader = options.provider.createReader(options.call);
    this.#form = options.provider.form;
    this.#created = options.created ?? 0;
  }

  protected take(run: Buffer, last: boolean): Batch | undefined {
    const chunks: Chunk[] = [];
    // Where what has been read ends: a run is one stretch of memory, and goes along as it is.
    let end = 0;
    for (const event of cutEvents(run)) {
      const read = this.#read(event, last);
      if (read === 'end') this.done = true;
      if (read === 'end' || read === undefined) break;
      end = event.byteOffset - run.byteOffset + event.byteLength;
      if (read === null) continue;
      read.created ||= this.#created;
      this.note(read);
      chunks.push(toChunk(event, this.#form, read));
    }
    this.quiet = chunks.length === 0;
    // Not judged before the marker: some forms give the reason first and are still to say more.
    if (this.done && this.failure === undefined && this.emptyAtFinish())
      this.failure = new HermesError('upstream_empty_answer', 'The model answered without an answer in it; try again.');
    return end > 0 ? translatedBatch(run.subarray(0, end), chunks, this.#form) : undefined;
  }

  #read(event: Buffer, last: boolean): ReturnType<Reader['read']> | undefined {
    try {
      return this.#reader.read(event);
    } catch (thrown) {
      if (last && !(thrown instanceof HermesError)) return undefined;
      this.failure =
        thrown instanceof HermesError
          ? thrown
          : new HermesError('upstream_error', 'The model sent an event that could not be read; try again.', { cause: thrown });
      return undefined;
    }
  }
}
