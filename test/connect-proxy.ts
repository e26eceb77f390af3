import http from 'node:http';
import { type AddressInfo, connect } from 'node:net';

export interface ConnectProxy {
  url: string;
  /** `host:port` of every tunnel, in order. */
  tunnels: string[];
  close(): Promise<void>;
}

/** A proxy that makes tunnels, whatever their name says, to a port of this machine. */
export async function startConnectProxy(toPort: (host: string) => number): Promise<ConnectProxy> {
  const tunnels: string[] = [];
  const proxy = http
    .createServer((_request, response) => response.writeHead(400).end('this proxy only makes tunnels'))
    .on('connect', (request, socket) => {
      const name = String(request.url);
      tunnels.push(name);
      const to = connect(toPort(name.split(':')[0] ?? ''), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        to.pipe(socket).pipe(to);
      });
      to.on('error', () => socket.destroy()).on('close', () => socket.destroy());
      socket.on('error', () => undefined).on('close', () => to.destroy());
    });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    tunnels,
    close: () =>
      new Promise((done) => {
        proxy.close(() => done());
        proxy.closeAllConnections();
      }),
  };
}
