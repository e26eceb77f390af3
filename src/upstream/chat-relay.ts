import { HermesError } from '../contracts/errors.ts';
import type { Batch, Chunk, Reader } from '../contracts/stream.ts';
import { batchOf, makeChunk, toBatch, toChunk } from '../wire/batch.ts';
import type { ChatChunk } from '../wire/chat.ts';
import { isRecord, parseJson } from '../wire/json.ts';
import { cutEvents, readEvent } from '../wire/sse.ts';
import { toRefusal } from './refusal.ts';
import { emptyAnswer, Relay, type RelayOptions } from './relay.ts';

const LF = 10;
const CR = 13;
const CLOSING_BRACE = 125;
/**
 * What must be looked at: usage, finish reasons, roles (said once), tool calls, errors. A quote inside a JSON string is always escaped, so that
 * nothing a model says can look like one of these keys.
 */
const MARKS = /"(?:usage|error)": *[^n ]|"(?:finish_reason|role)": *"|"tool_calls": *\[|"object": *"error"/g;

/** Where an event stands in a run. */
interface Span {
  start: number;
  end: number;
}

/**
 * An upstream in OpenAI's own form. A run of clean events is relayed as it came after one look for marks; everything else
 * (comments, CR, several data lines, other fields, the terminal marker, what must be mended) is cut and put right.
 */
export class ChatRelay extends Relay {
  readonly #provider: RelayOptions['provider'];
  /** Set where names must be mapped back: events with tool calls are then written anew. */
  readonly #reader: Reader | undefined;

  constructor(options: RelayOptions) {
    super(options);
    this.#provider = options.provider;
    this.#reader = options.call.context === undefined ? undefined : options.provider.createReader(options.call);
  }

  protected take(run: Buffer, last: boolean): Batch | undefined {
    if (run.indexOf(CR) >= 0) return this.take(withoutCarriageReturns(run), last);
    const clean = last ? undefined : toCleanRun(run);
    if (clean === undefined) return this.#mend(run, last);
    const batch = this.#relay(run.subarray(0, clean.end), clean.spans);
    return clean.done && this.failure === undefined ? this.#finish(batch) : batch;
  }

  #relay(run: Buffer, events: readonly Span[]): Batch | undefined {
    if (events.length === 0) return undefined;
    const before = this.states.mark();
    // What is looked at once more must find the calls as they were.
    const anew = (): Batch | undefined => {
      this.states.rewind(before);
      return this.#mend(run, false);
    };
    if (!this.settled) {
      if (!this.#noteUntilSettled(run, events)) return anew();
      this.states.rewind(before);
    }
    const marked = this.#noteMarked(run);
    return marked === undefined ? anew() : toBatch(run, marked);
  }

  #finish(batch: Batch | undefined): Batch | undefined {
    this.done = true;
    const more: Chunk[] = [];
    this.#finishOpen(more);
    return more.length === 0 ? batch : batchOf([...(batch?.chunks ?? []), ...more]);
  }

  /** False when an event needs a closer look. */
  #noteUntilSettled(run: Buffer, events: readonly Span[]): boolean {
    for (const { start, end } of events) {
      const view = parse(run.subarray(start, end));
      if (view === undefined || view.error !== undefined || !Array.isArray(view.choices)) return false;
      this.note(view);
      if (this.settled) return true;
    }
    return !(this.states.anyFinished && this.emptyAtFinish());
  }

  /** Was there a mark? Undefined: an event must be written anew. */
  #noteMarked(run: Buffer): boolean | undefined {
    const text = run.toString('latin1');
    let marked = false;
    const given: string[] = [];
    // Taken back when the run is written anew: there each event comes by once more.
    const anew = (): undefined => {
      this.states.takeBack(given);
    };
    MARKS.lastIndex = 0;
    for (let hit = MARKS.exec(text); hit !== null; hit = MARKS.exec(text)) {
      const before = text.lastIndexOf('\n\n', hit.index);
      const start = before < 0 ? 0 : before + 2;
      const end = text.indexOf('\n\n', hit.index) + 2;
      MARKS.lastIndex = end;
      const view = parse(run.subarray(start, end));
      if (view === undefined || isError(view)) return anew();
      this.note(view);
      const calls = view.choices?.some((choice) => choice.delta?.tool_calls);
      if ((calls && this.#reader) || this.states.needsMending(view)) return anew();
      given.push(...this.states.give(view));
      marked ||= Boolean(view.usage) || (view.choices?.some((choice) => choice.finish_reason) ?? false);
    }
    return marked;
  }

  #mend(run: Buffer, last: boolean): Batch | undefined {
    const chunks: Chunk[] = [];
    let heard = false;
    for (const event of cutEvents(run)) {
      const { event: name, data } = readEvent(event);
      if (data === undefined || data.trim() === '') continue;
      heard = true;
      if (data.trim() === '[DONE]') {
        this.done = true;
        break;
      }
      if (!this.#mendEvent(event, name, data, last, chunks)) break;
    }
    this.quiet = !heard;
    if (this.done && this.failure === undefined) this.#finishOpen(chunks);
    return chunks.length > 0 ? batchOf(chunks) : undefined;
  }

  /** False: the stream is at its end here. */
  #mendEvent(event: Buffer, name: string, data: string, last: boolean, chunks: Chunk[]): boolean {
    const view = parseData(data);
    if (view === undefined) {
      if (!last) this.failure = new HermesError('upstream_error', 'The model sent an event that could not be read; try again.');
      return false;
    }
    if (isError(view) || name === 'error') {
      this.failure = toRefusal(this.#provider.toFailure(200, {}, Buffer.from(data)));
      return false;
    }
    const translated = this.#reader && data.includes('"tool_calls"') ? this.#reader.read(event) : view;
    if (translated === null || translated === 'end') return true;
    this.note(translated);
    if (!this.states.needsMending(translated)) {
      chunks.push(translated === view ? toChunk(toCleanEvent(event, data), 'openai-chat', view) : makeChunk(translated));
    } else {
      for (const { index, finish_reason } of translated.choices) if (finish_reason) this.#pushMissingArguments(index, chunks);
      chunks.push(makeChunk(this.states.mend(translated)));
    }
    this.states.give(translated);
    if (!this.states.anyFinished || !this.emptyAtFinish()) return true;
    this.failure = emptyAnswer();
    return false;
  }

  /** `[DONE]` says that the answer is whole: clients are told why it ended even where the upstream was not. */
  #finishOpen(chunks: Chunk[]): void {
    if (!this.begun) {
      if (!this.states.anyFinished) this.failure = emptyAnswer();
      return;
    }
    for (const index of this.states.openChoices) this.#pushMissingArguments(index, chunks);
    const finish = this.states.missingFinish();
    if (finish) chunks.push(makeChunk(finish));
  }

  #pushMissingArguments(index: number, chunks: Chunk[]): void {
    const missing = this.states.missingArguments(index);
    if (missing) chunks.push(makeChunk(missing));
  }
}

interface CleanRun {
  spans: Span[];
  /** Where the events end: before the terminal marker. */
  end: number;
  done: boolean;
}

/** The events of a run in which each is one `data:{…}` line and its blank line, up to `[DONE]`; undefined when anything else stands there. */
function toCleanRun(run: Buffer): CleanRun | undefined {
  const spans: Span[] = [];
  let start = 0;
  while (start < run.length) {
    const lineEnd = run.indexOf(LF, start);
    if (lineEnd < 0 || run[lineEnd + 1] !== LF) return undefined;
    if (!startsWithData(run, start) || run[lineEnd - 1] !== CLOSING_BRACE) {
      return run.toString('latin1', start, lineEnd).trimEnd() === 'data: [DONE]' ? { spans, end: start, done: true } : undefined;
    }
    spans.push({ start, end: lineEnd + 2 });
    start = lineEnd + 2;
  }
  return { spans, end: start, done: false };
}

/** `data:{` or `data: {`. */
function startsWithData(run: Buffer, at: number): boolean {
  if (run[at] !== 100 || run[at + 1] !== 97 || run[at + 2] !== 116 || run[at + 3] !== 97 || run[at + 4] !== 58) return false;
  return run[at + 5] === 123 || (run[at + 5] === 32 && run[at + 6] === 123);
}

function withoutCarriageReturns(run: Buffer): Buffer {
  return Buffer.from(run.toString('latin1').replace(/\r\n?/g, '\n'), 'latin1');
}

/** OpenAI's `error` member, or vLLM's flat one. */
function isError(view: Readonly<Record<string, unknown>>): boolean {
  return Boolean(view.error) || view.object === 'error';
}

function parse(event: Buffer): ChatChunk | undefined {
  return parseData(event.toString('utf8', 5));
}

function parseData(data: string): ChatChunk | undefined {
  try {
    const value = parseJson(data);
    return isRecord(value) ? (value as ChatChunk) : undefined;
  } catch {
    return undefined;
  }
}

function toCleanEvent(event: Buffer, data: string): Buffer {
  const clean = toCleanRun(event);
  return clean?.spans.length === 1 && !clean.done ? event : Buffer.from(`data: ${data.replaceAll('\n', ' ')}\n\n`);
}
