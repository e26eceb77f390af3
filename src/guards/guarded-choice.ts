import type { Delta, ToolCallDelta } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import { guardMember, maskIn, type OutputGuard } from './guarded-answer.ts';
import { TextWindow } from './text-window.ts';
import { isName } from './walk.ts';

/** Members of a delta that are text in pieces, one after the other. */
const TEXTS: ReadonlySet<string> = new Set(['content', 'reasoning_content', 'reasoning', 'refusal']);
/** Members that hold text in pieces. */
const HOLD_TEXTS: ReadonlySet<string> = new Set(['tool_calls', 'function_call', 'audio', 'reasoning_details']);
const isInPieces = (key: string, value: unknown): boolean => (typeof value === 'string' ? !isName(key) && value !== '' : HOLD_TEXTS.has(key));

interface Text {
  window: TextWindow;
  /** How a held end of it is told. */
  toDelta(text: string): Delta;
}
type Kind = 'text' | 'json' | 'thought';

/** One choice of a stream: a window for each of its texts, one of them open at a time. */
export class GuardedChoice {
  readonly #guard: OutputGuard;
  readonly #texts = new Map<string, Text>();
  #current: string | undefined;

  constructor(guard: OutputGuard) {
    this.#guard = guard;
  }

  get cut(): boolean {
    return this.#guard.size?.full ?? false;
  }

  /** Does this text end another, whose held end must go out first? */
  switches(name: string): boolean {
    return this.#current !== undefined && this.#current !== name && (this.#texts.get(this.#current)?.window.holds ?? false);
  }

  text(name: string, piece: string): string {
    this.#current = name;
    return this.#push(name, piece, kindOf(name), (text) => ({ [name]: text }));
  }

  /** The delta with its texts changed (the same one when they stay), and what has to go out before it. */
  delta(delta: Delta | undefined, last: boolean): { rest: Delta[]; delta: Delta | undefined } {
    const rest: Delta[] = [];
    let out = delta;
    for (const [key, value] of Object.entries(delta ?? {})) {
      const next = this.#member(key, value, rest);
      if (next !== value) out = { ...out, [key]: next };
    }
    if (last) {
      const held = this.rest();
      // What this very event brought goes before its finish, too.
      if (held.length > 0 && out) {
        const members = Object.entries(out);
        const said = members.filter(([key, value]) => isInPieces(key, value));
        if (said.length > 0) {
          rest.push(Object.fromEntries(said));
          out = Object.fromEntries(members.filter(([key, value]) => !isInPieces(key, value)));
        }
      }
      rest.push(...held);
    }
    return { rest, delta: out };
  }

  /** The held ends of all texts. */
  rest(): Delta[] {
    return [...this.#texts.keys()].flatMap((name) => this.#flush(name));
  }

  #member(key: string, value: unknown, rest: Delta[]): unknown {
    if (typeof value === 'string' && isInPieces(key, value)) {
      // What nobody knows may be told beside the text: it ends nothing.
      if (!TEXTS.has(key)) return this.#push(key, value, kindOf(key), (text) => ({ [key]: text }));
      rest.push(...this.#ended(key));
      return this.text(key, value);
    }
    if (key === 'tool_calls' && Array.isArray(value)) return mapped(value, (call: ToolCallDelta) => this.#call(call, rest));
    if (key === 'function_call') return this.#piece(value, 'arguments', key, rest, (made) => ({ function_call: made }));
    if (key === 'audio')
      return guardMember(
        this.#piece(value, 'transcript', key, rest, (made) => ({ audio: made })),
        this.#guard,
        key,
      );
    if (key === 'reasoning_details' && Array.isArray(value)) return mapped(value, (detail: unknown, at) => this.#detail(detail, at));
    return guardMember(value, this.#guard, key);
  }

  #call(call: ToolCallDelta, rest: Delta[]): ToolCallDelta {
    const { index } = call;
    const name = `call ${index}`;
    // A call that opens ends what was said before it, even where it brings no arguments yet.
    rest.push(...this.#ended(name));
    this.#current = name;
    let out = call;
    for (const [part, member] of [
      ['function', 'arguments'],
      ['custom', 'input'],
    ] as const) {
      const before: unknown = Reflect.get(call, part);
      const after = this.#piece(before, member, name, rest, (made) => ({ tool_calls: [{ index, [part]: made }] }));
      if (after !== before) out = { ...out, [part]: after };
    }
    return out;
  }

  /** A member that is text in pieces, within a record. */
  #piece(value: unknown, member: string, name: string, rest: Delta[], toDelta: (made: Record<string, string>) => Delta): unknown {
    const piece = isRecord(value) ? value[member] : undefined;
    if (!isRecord(value) || typeof piece !== 'string' || piece === '') return value;
    rest.push(...this.#ended(name));
    this.#current = name;
    const text = this.#push(name, piece, member === 'arguments' ? 'json' : 'text', (made) => toDelta({ [member]: made }));
    return text === piece ? value : { ...value, [member]: text };
  }

  /** The same thoughts as `reasoning`, told beside it: what is held of the one does not end the other. */
  #detail(detail: unknown, at: number): unknown {
    if (!isRecord(detail)) return detail;
    const { text, summary, signature: _signature, ...head } = detail;
    let out = detail;
    for (const [member, piece] of Object.entries({ text, summary })) {
      if (typeof piece !== 'string' || piece === '') continue;
      const made = this.#push(`detail ${String(detail.index ?? at)} ${member}`, piece, 'thought', (held) => ({
        reasoning_details: [{ ...head, [member]: held }],
      }));
      if (made !== piece) out = { ...out, [member]: made };
    }
    return out;
  }

  #ended(next: string): Delta[] {
    return this.#current === undefined || this.#current === next ? [] : this.#flush(this.#current);
  }

  #flush(name: string): Delta[] {
    const held = this.#texts.get(name);
    const text = this.#sized(held?.window.push('', true) ?? '');
    return held === undefined || text === '' ? [] : [held.toDelta(text)];
  }

  #sized(text: string): string {
    return this.#guard.size?.take(text) ?? text;
  }

  #push(name: string, piece: string, kind: Kind, toDelta: Text['toDelta']): string {
    let text = this.#texts.get(name);
    if (text === undefined) {
      text = { window: this.#window(kind), toDelta };
      this.#texts.set(name, text);
    }
    return this.#sized(text.window.push(piece));
  }

  #window(kind: Kind): TextWindow {
    const { rules, vault, onHit } = this.#guard;
    return new TextWindow({
      rules: rules.empty ? undefined : rules,
      vault: kind === 'thought' ? vault.masking : vault,
      json: kind === 'json',
      onHit,
      replace: maskIn(this.#guard),
    });
  }
}

/** Thinking may be signed as it is: see guardThinking. */
function kindOf(member: string): Kind {
  return member.startsWith('reasoning') ? 'thought' : 'text';
}

/** The same list when nothing in it changed. */
function mapped<T>(list: T[], change: (item: T, at: number) => T): T[] {
  const out = list.map(change);
  return out.some((item, at) => item !== list[at]) ? out : list;
}
