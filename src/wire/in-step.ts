/**
 * Gives a function that lets its callers go on at the end of this turn of the event loop, all of them together. Requests that came in the same
 * turn then take each of their steps one after the other, so that the processor runs through the code of a step once for all of them: it
 * holds far less of it at hand than a request needs. A single request is not delayed by more than the rest of the turn.
 * What is to go on in step must be at the same step: one function for each place. What is given must not throw.
 */
export function createInStep(): (goOn: () => void) => void {
  let waiting: (() => void)[] = [];
  const release = (): void => {
    const all = waiting;
    waiting = [];
    for (const goOn of all) goOn();
  };
  return (goOn) => {
    if (waiting.push(goOn) === 1) setImmediate(release);
  };
}
