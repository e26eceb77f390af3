class LimitPassed extends Error {
  readonly code = 'timeout';
}

/** Rejects when the promise takes longer; what becomes of it then is not waited for. */
export function withLimit<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    // When it was this process that stood still, the answer is already in the socket: the loop reads it before the second turn.
    const late = (): void => void setImmediate(() => setImmediate(() => reject(new LimitPassed(`no answer within ${ms} ms`))));
    const timer = setTimeout(late, ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
