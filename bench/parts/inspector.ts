import { once } from 'node:events';
import { WebSocket } from 'undici';

/** The inspector of a Node process that was started with `--inspect=PORT`. */
export interface Inspector {
  call<Result>(method: string, parameters?: object): Promise<Result>;
  close(): void;
}

export async function openInspector(port: number): Promise<Inspector> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '');
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result, error } = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } };
    const call = id === undefined ? undefined : waiting.get(id);
    if (id === undefined || call === undefined) return;
    waiting.delete(id);
    if (error) call.reject(new Error(error.message));
    else call.resolve(result);
  });
  await once(socket, 'open');
  let last = 0;
  return {
    call<Result>(method: string, parameters: object = {}) {
      const id = ++last;
      socket.send(JSON.stringify({ id, method, params: parameters }));
      return new Promise<Result>((resolve, reject) => waiting.set(id, { resolve: (value) => resolve(value as Result), reject }));
    },
    close: () => socket.close(),
  };
}
