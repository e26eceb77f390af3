import type { FunctionTool } from '../../wire/chat.ts';
import { isRecord, parseJson, stringifyJson } from '../../wire/json.ts';
import { refuse } from './refuse.ts';

type Fields = Record<string, unknown>;

const PARAMETERS = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'], additionalProperties: false };

/**
 * A tool of the client's whose input is free text. It travels as a function with the one parameter `input`, which every model can call and every step
 * understands; `custom` beside it is the same tool in chat completions' words, for the upstreams that know such tools.
 */
export function toCustomTool({ name, description, format }: Fields, path: string): FunctionTool {
  if (typeof name !== 'string') throw refuse(`${path}.name`, `'${path}' must have a name.`);
  const told = typeof description === 'string' ? { description } : {};
  const custom = { name, ...told, ...(isRecord(format) ? { format: toChatFormat(format) } : {}) };
  const explained = [told.description, toRule(format)].filter((text) => text !== undefined).join('\n\n');
  return { type: 'function', function: { name, ...(explained === '' ? {} : { description: explained }), parameters: PARAMETERS }, custom };
}

function toChatFormat({ type, ...grammar }: Fields): Fields {
  return type === 'grammar' ? { type, grammar } : { type, ...grammar };
}

/** For models that nothing holds to a grammar. */
function toRule(format: unknown): string | undefined {
  if (!isRecord(format) || format.type !== 'grammar') return undefined;
  return `\`input\` must follow this ${format.syntax === 'regex' ? 'regular expression' : 'Lark grammar'}:\n${String(format.definition)}`;
}

export function customNames(tools: unknown): ReadonlySet<string> {
  const custom = Array.isArray(tools) ? tools.filter((tool) => isRecord(tool) && tool.type === 'custom') : [];
  return new Set(custom.map(({ name }) => String(name)));
}

export function toArguments(input: unknown): string {
  return stringifyJson({ input: typeof input === 'string' ? input : '' });
}

/** The input in a call's arguments, as far as it came where they were cut; the arguments themselves where a model wrote others. */
export function toInput(text: string): string {
  try {
    const value = parseJson(text);
    return isRecord(value) && typeof value.input === 'string' ? value.input : text;
  } catch {
    return OPENING.test(text) ? new InputReader().read(text) : text;
  }
}

const OPENING = /^\s*\{\s*"input"\s*:\s*"/;
/** An escape, or the half of a surrogate pair, that may not be whole yet. */
const UNFINISHED = /\\(?:u[0-9a-fA-F]{0,3})?$|(?:\\u[dD][89abAB][0-9a-fA-F]{2}|[\ud800-\udbff])(?:\\(?:u[0-9a-fA-F]{0,3})?)?$/;

/** The input out of arguments that come in pieces. */
export class InputReader {
  #text = '';
  #opened = false;
  #over = false;

  /** What it adds to the input. */
  read(piece: string): string {
    if (this.#over) return '';
    this.#text += piece;
    if (!this.#opened) {
      const opening = OPENING.exec(this.#text)?.[0];
      if (opening === undefined) return '';
      this.#opened = true;
      this.#text = this.#text.slice(opening.length);
    }
    const inside = /^(?:[^"\\]|\\[\s\S])*/.exec(this.#text)?.[0] ?? '';
    this.#over = this.#text[inside.length] === '"';
    const ready = this.#over ? inside : inside.slice(0, unfinishedAt(inside));
    this.#text = this.#text.slice(ready.length);
    try {
      return String(parseJson(`"${ready}"`));
    } catch {
      this.#over = true;
      return '';
    }
  }
}

/** An escaped backslash escapes nothing. */
function unfinishedAt(text: string): number {
  const at = UNFINISHED.exec(text)?.index ?? text.length;
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 0 ? at : text.length;
}
