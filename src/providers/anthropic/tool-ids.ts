import { createHash } from 'node:crypto';

/** Source: the Messages API's `tool_use.id` pattern. */
const LEGAL = /^[a-zA-Z0-9_-]+$/;

/**
 * Tool-call ids on the outgoing copy. Other makers' ids (`functions.search:0`) are made legal, the same for call and
 * result and never two into one; some servers number their calls anew each turn, so an id that stands twice in a
 * conversation is told apart, too: Anthropic wants every one to be unique.
 */
export class ToolIds {
  readonly #reserved: ReadonlySet<string>;
  readonly #taken = new Set<string>();

  /** `all`: every id of the conversation, so that a legal one always keeps itself. */
  constructor(all: Iterable<string>) {
    this.#reserved = new Set([...all].filter((id) => LEGAL.test(id)));
  }

  /** The id on the wire of one more call. */
  open(id: string): string {
    const legal = LEGAL.test(id);
    const stem = legal ? id : `${id.replace(/[^a-zA-Z0-9_-]/gu, '_')}_${createHash('sha256').update(id).digest('hex').slice(0, 8)}`;
    let wire = stem;
    for (let count = 2; this.#taken.has(wire) || (this.#reserved.has(wire) && wire !== id); count++) wire = `${stem}_${count}`;
    this.#taken.add(wire);
    return wire;
  }
}
