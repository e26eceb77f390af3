/** What of a foreign configuration has no place in hermes', or needs a hand. */
export class Findings {
  readonly lines: string[] = [];

  add(path: string, message: string): void {
    this.lines.push(`${path}: ${message}`.replaceAll(/\s+/g, ' '));
  }

  /** Every key that nobody has taken: nothing is left out in silence. */
  rest(path: string, block: Readonly<Record<string, unknown>>, taken: ReadonlySet<string>): void {
    for (const key of Object.keys(block)) if (!taken.has(key)) this.add(path === '' ? key : `${path}.${key}`, 'has no counterpart and was left out');
  }
}
