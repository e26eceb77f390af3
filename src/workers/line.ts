import type { Answers } from '../app/peers.ts';

/** What passes between two processes, in either direction. */
type Message =
  | { line: 'ask'; id: number; name: string; body?: unknown }
  | { line: 'answer'; id: number; body?: unknown }
  | { line: 'failure'; id: number; message: string; code?: string };
type Catalogue<Asked> = Record<keyof Asked, { ask: unknown; answer: unknown }>;

interface Waiting {
  resolve(body: unknown): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Questions and answers over the channel between a primary and a worker. `Theirs`: what the other side answers; `Ours`: what this side
 * does. Both ends are the same build, so what comes is taken to be what the catalogue says.
 */
export class Line<Theirs extends Catalogue<Theirs>, Ours extends Catalogue<Ours>> {
  readonly #send: (message: Message) => void;
  readonly #answers: Partial<Answers<Ours>>;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #closed = false;

  /** `send` may throw when the channel is gone. */
  constructor(send: (message: object) => void, answers: Partial<Answers<Ours>>) {
    this.#send = send;
    this.#answers = answers;
  }

  /** More answers, or others. */
  answer(answers: Partial<Answers<Ours>>): void {
    Object.assign(this.#answers, answers);
  }

  /** Rejects with what went wrong there, when the channel ends, or when nothing came in time. */
  ask<Name extends keyof Theirs & string>(name: Name, ask: Theirs[Name]['ask'], timeoutMs?: number): Promise<Theirs[Name]['answer']> {
    if (this.#closed) return Promise.reject(new Error('the process is gone'));
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const late = (): void => this.#settle(id)?.reject(new Error(`no answer to "${name}" within ${timeoutMs} ms`));
      this.#waiting.set(id, { resolve, reject, timer: timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs).unref() });
      this.#post({ line: 'ask', id, name, body: ask });
    });
  }

  /** Everything that came over the channel; what is not ours is let by. */
  hear(heard: unknown): void {
    const message = heard as Message | null;
    if (typeof message !== 'object' || message === null || !('line' in message)) return;
    if (message.line === 'ask') void this.#reply(message);
    else if (message.line === 'answer') this.#settle(message.id)?.resolve(message.body);
    else this.#settle(message.id)?.reject(Object.assign(new Error(message.message), message.code === undefined ? {} : { code: message.code }));
  }

  close(): void {
    this.#closed = true;
    for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(new Error('the process is gone'));
  }

  async #reply({ id, name, body }: Message & { line: 'ask' }): Promise<void> {
    try {
      const answer = this.#answers[name as keyof Ours];
      if (answer === undefined) throw new Error(`it does not answer to "${name}" now`);
      this.#post({ line: 'answer', id, body: await answer(body) });
    } catch (thrown) {
      const code = thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? { code: thrown.code } : {};
      this.#post({ line: 'failure', id, message: thrown instanceof Error ? thrown.message : String(thrown), ...code });
    }
  }

  #post(message: Message): void {
    try {
      this.#send(message);
    } catch {
      this.close();
    }
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    return waiting;
  }
}
