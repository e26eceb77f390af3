import { createInStep } from '../wire/in-step.ts';

/** Whoever waited for an upstream. */
const inStep = createInStep();

/**
 * Waits for something that others announce, until a point in time (`performance.now()`). Its one timer is set anew only when
 * it fires early or too late a one is set: a stream of a thousand chunks arms it a few times.
 */
export class Waiting {
  #wake: (() => void) | undefined;
  #announced = false;
  #until = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  readonly #late: () => void;

  /** `late` is called when the time has passed and somebody still waits. */
  constructor(late: () => void) {
    this.#late = late;
  }

  for(until: number): Promise<void> {
    this.#until = until;
    this.#arm();
    return new Promise((wake) => {
      this.#wake = wake;
    });
  }

  /** Something has come: whoever waits goes on in step with others, when the rest of what comes together has come as well. */
  announce(): void {
    if (this.#wake === undefined || this.#announced) return;
    this.#announced = true;
    inStep(this.#goOn);
  }

  readonly #goOn = (): void => {
    const wake = this.#wake;
    this.#announced = false;
    this.#wake = undefined;
    wake?.();
  };

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.announce();
  }

  #arm(): void {
    if (this.#until === Number.POSITIVE_INFINITY) return;
    if (this.#timer !== undefined) {
      if (this.#timerAt <= this.#until) return;
      clearTimeout(this.#timer);
    }
    this.#timerAt = this.#until;
    this.#timer = setTimeout(this.#fire, Math.min(Math.max(0, this.#until - performance.now()), 0x7fffffff));
  }

  readonly #fire = (): void => {
    this.#timer = undefined;
    if (this.#wake === undefined || this.#announced) return;
    if (performance.now() < this.#until) this.#arm();
    else this.#late();
  };
}
