import type { ServerResponse } from 'node:http';

/**
 * Signs of life in a stream: comment lines, written only between whole events. The first one commits the 200, so that a
 * client waiting for a slow first token does not give up; failover stays invisible.
 */
export class Heartbeat {
  readonly #response: ServerResponse;
  readonly #commit: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #bytesBefore = 0;

  /** `everyMs` 0 is never. */
  constructor(response: ServerResponse, everyMs: number, commit: () => void) {
    this.#response = response;
    this.#commit = commit;
    if (everyMs > 0) this.#timer = setInterval(() => this.#beat(), everyMs).unref();
  }

  /** Lost when nothing has been committed yet. */
  progress(text: string): void {
    if (this.#response.headersSent) this.#write(`: ${text.replaceAll(/[\r\n]+/g, ' ')}\n\n`);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    const response = this.#response;
    if (!response.headersSent && !response.destroyed) this.#commit();
    const written = response.socket?.bytesWritten ?? 0;
    // Something else went out meanwhile: that was sign enough.
    if (written === this.#bytesBefore || this.#bytesBefore === 0) this.#write(': keep-alive\n\n');
    this.#bytesBefore = response.socket?.bytesWritten ?? 0;
  }

  #write(text: string): void {
    const response = this.#response;
    if (!response.destroyed && !response.writableEnded && !response.writableNeedDrain) response.write(text);
  }
}
