/** A count that sums and products of can be trusted: `1e308` is a whole number too, and a hundred of it are infinite. */
export function isCount(value: unknown, most: number = Number.MAX_SAFE_INTEGER): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most;
}
