import type { Priority } from '../contracts/config.ts';
import type { RouteInput } from '../contracts/matcher.ts';
import type { RouteSubject } from '../contracts/routing.ts';
import { newestUserText } from '../wire/newest-user-text.ts';
import { normaliseText } from './text.ts';

/** What the rules are asked. The text is normalised when a rule first looks at it; what is found in it stays for the others. */
export class RouteQuestion implements RouteInput {
  readonly original: string;
  readonly hasText: boolean;
  readonly userLevel: string | undefined;
  readonly serviceType: string | undefined;
  readonly project: string | undefined;
  readonly priority: Priority;
  readonly now: number;
  readonly memo = new Map<object, unknown>();
  readonly #subject: RouteSubject;
  #text: string | undefined;

  constructor(subject: RouteSubject, now: number) {
    const { ask, caller } = subject;
    this.#subject = subject;
    this.original = newestUserText(subject.request.messages);
    this.hasText = this.original !== '';
    this.userLevel = caller?.userLevel ?? ask.userLevel;
    this.serviceType = caller?.service ?? ask.serviceType;
    this.project = caller?.project ?? ask.project;
    this.priority = caller?.priority ?? ask.priority ?? 'normal';
    this.now = now;
  }

  get text(): string {
    this.#text ??= normaliseText(this.original);
    return this.#text;
  }

  /** Made on first use only: a signal costs microseconds, and most rules need not wait. */
  get signal(): AbortSignal | undefined {
    return this.#subject.signal;
  }
}
