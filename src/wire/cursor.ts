/** A place in a paged list, opaque to callers. */
export function toCursor(place: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** Undefined for what `toCursor` has not made: callers begin at the beginning, or refuse. */
export function fromCursor(cursor: string): (string | number)[] | undefined {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(place) && place.every((part) => typeof part === 'string' || typeof part === 'number') ? place : undefined;
  } catch {
    return undefined;
  }
}
