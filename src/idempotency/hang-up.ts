import type { HermesError } from '../contracts/errors.ts';

const LOOK_MS = 250;

export interface HangUpActions {
  stop(reason: HermesError): void;
  /** Reads on, for nobody. */
  drive(): void;
  awaitedElsewhere(): Promise<boolean>;
}

/**
 * What becomes of a run whose last caller has left (SPEC 7). Without side effects on offer it stops at once. With them it may
 * think on, but no such call begins unless a repeat joins in time; once one has begun, the run goes on to its end.
 */
export class HangUp {
  offered = false;
  readonly #rejoinMs: number;
  readonly #actions: HangUpActions;
  #begun = false;
  #ended = false;
  /** Another instance waits for the answer: it will be fetched from the store. */
  #awaited = false;
  #reason: HermesError | undefined;
  #timers: NodeJS.Timeout[] = [];
  #asking: ((may: boolean) => void)[] = [];

  constructor(rejoinMs: number, actions: HangUpActions) {
    this.#rejoinMs = rejoinMs;
    this.#actions = actions;
  }

  get begun(): boolean {
    return this.#begun;
  }

  left(reason: HermesError): void {
    this.#reason = reason;
    if (!this.offered && !this.#begun) {
      void this.#unlessAwaited(reason);
      return;
    }
    this.#actions.drive();
    if (this.#begun) return;
    const timer = setTimeout(() => void this.#unlessAwaited(reason), this.#rejoinMs);
    const look = setInterval(() => void this.#look(), LOOK_MS);
    this.#timers = [timer, look];
  }

  joined(): void {
    this.#reason = undefined;
    this.#clear();
    this.#answer(true);
  }

  /** `watched`: somebody waits for the answer. */
  async begin(watched: boolean): Promise<boolean> {
    if (this.#begun) return true;
    if (this.#ended) return false;
    const may = watched || this.#awaited || (await new Promise<boolean>((resolve) => this.#asking.push(resolve)));
    if (may) {
      this.#begun = true;
      this.#clear();
    }
    return may;
  }

  end(): void {
    this.#ended = true;
    this.#clear();
    this.#answer(false);
  }

  async #unlessAwaited(reason: HermesError): Promise<void> {
    if (await this.#actions.awaitedElsewhere()) this.#goOn();
    else if (this.#reason === reason && !this.#begun && !this.#awaited) this.#actions.stop(reason);
  }

  async #look(): Promise<void> {
    if (this.#asking.length > 0 && (await this.#actions.awaitedElsewhere())) this.#goOn();
  }

  #goOn(): void {
    this.#awaited = true;
    this.#clear();
    this.#actions.drive();
    this.#answer(true);
  }

  #answer(may: boolean): void {
    for (const resolve of this.#asking.splice(0)) resolve(may);
  }

  #clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
  }
}
