/** A place in a text, in UTF-16 units, half-open. */
export interface Span {
  start: number;
  end: number;
}
