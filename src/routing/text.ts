const BEYOND_ASCII = /[^\p{ASCII}]/u;

/** NFKC and lower case; normalised again because lower-casing can decompose (`İ`). ASCII, the common case, is only lower-cased. */
export function normaliseText(text: string): string {
  return BEYOND_ASCII.test(text) ? text.normalize('NFKC').toLowerCase().normalize('NFKC') : text.toLowerCase();
}
