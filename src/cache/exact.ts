const WORD = /[A-Za-z\p{N}@.,:/_%+-]+/gu;
/** Numbers, addresses, and codes and names in capitals. */
const EXACT = /[\p{N}@]|\b[A-Z]{2,}\b/u;
/** Where a sentence or a clause ends, not the value. */
const END = /[.,:]$/;

/** Words of a text that name one thing: two questions that differ in one of them never mean the same, however near they are. */
export function exactIn(text: string): string[] {
  return (text.match(WORD) ?? []).filter((word) => EXACT.test(word)).map((word) => word.replace(END, ''));
}
