/** Follows JSON text, whole or piece by piece: does a place lie within a string? */
export class JsonPlace {
  #inString = false;
  #escaped = false;

  get inString(): boolean {
    return this.#inString;
  }

  pass(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (this.#escaped) this.#escaped = false;
      else if (unit === 92) this.#escaped = this.#inString;
      else if (unit === 34) this.#inString = !this.#inString;
    }
  }
}

/** A value for this place: within a string its characters escaped, elsewhere a string of its own. */
export function toJsonText(value: string, inString: boolean): string {
  const text = JSON.stringify(value);
  return inString ? text.slice(1, -1) : text;
}
