import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createNames, type Names } from './names.ts';

/**
 * Machines of their own on one wire: each host is a network namespace on a bridge (iproute2, root). This side has an address for each
 * service, so that one way between one host and one service can be cut, without a word to either end, while all others stay.
 */
const SERVICES = { clients: 1, redis: 4, models: 5, postgres: 6, tools: 7 } as const;
export type ServiceName = keyof typeof SERVICES;
const FIRST_HOST = 11;
const RULES_FROM = 20_000;

const ip = (...words: string[]): void => void execFileSync('ip', words, { stdio: 'pipe' });
const say = (error: unknown): string => String((error as { stderr?: Buffer }).stderr ?? error).trim();

export interface Network {
  /** A service's address as the hosts see it. */
  address(service: ServiceName): string;
  hostAddress(host: number): string;
  /** Before a program: it runs on that host. */
  wrapper(host: number): string[];
  /** The service is at this port on the loopback, and now at the same port of its address. */
  forward(service: ServiceName, port: number): Promise<void>;
  /** What the service says no longer reaches the host; what the host says still arrives. Nobody is told. */
  cut(host: number, service: ServiceName): void;
  mend(host: number, service: ServiceName): void;
  unplug(host: number): void;
  plug(host: number): void;
  /** Ends the service's connections. Of those to a host that is cut off the host never hears: half-open. */
  dropConnections(service: ServiceName): void;
  readonly names: Names;
  close(): Promise<void>;
}

let checked: string | undefined | false = false;
/** Undefined: it can be had. Else why not; said once, loudly. */
export function networkMissing(): string | undefined {
  if (checked !== false) return checked;
  checked = undefined;
  try {
    if (process.getuid?.() !== 0) throw new Error('not root');
    const name = `hermes-try-${process.pid}`;
    ip('netns', 'add', name);
    ip('netns', 'del', name);
  } catch (error) {
    checked = `network namespaces: ${say(error)}`;
    process.stderr.write(`\n!!! SKIPPED: partitions, half-open connections, slow names: ${checked} (root and iproute2 are needed)\n\n`);
  }
  return checked;
}

/** What processes left that were killed. */
function tidyOthers(): void {
  const isGone = (pid: string | undefined): boolean => pid !== undefined && !existsSync(`/proc/${pid}`);
  const list = (words: string[]): string[] => execFileSync('ip', words, { encoding: 'utf8' }).split('\n');
  for (const line of list(['netns', 'list'])) {
    const [name, pid] = /^hermes-(\d+)-\d+/.exec(line) ?? [];
    if (name && isGone(pid)) attempt(() => ip('netns', 'del', name));
  }
  for (const line of list(['-o', 'link', 'show', 'type', 'bridge'])) {
    const [, name, pid] = /\b(hb(\d+))\b/.exec(line) ?? [];
    if (name && isGone(pid)) attempt(() => ip('link', 'del', name));
  }
}
function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // It was not there.
  }
}

/** One process makes one network at a time. */
export async function createNetwork(hosts: number): Promise<Network> {
  tidyOthers();
  const subnet = `10.231.${process.pid % 250}`;
  const [bridge, prefix] = [`hb${process.pid}`, `hermes-${process.pid}-`];
  const address = (service: ServiceName): string => `${subnet}.${SERVICES[service]}`;
  const hostAddress = (host: number): string => `${subnet}.${FIRST_HOST + host}`;
  const rules = new Set<number>();
  const forwarders: { service: ServiceName; server: Server; sockets: Set<Socket> }[] = [];
  const tidy = (): void => {
    for (const rule of rules) attempt(() => ip('rule', 'del', 'pref', String(rule)));
    for (let host = 0; host < hosts; host++) {
      attempt(() => ip('netns', 'del', prefix + host));
      rmSync(join('/etc/netns', prefix + host), { recursive: true, force: true });
    }
    attempt(() => ip('link', 'del', bridge));
  };
  process.once('exit', tidy);
  ip('link', 'add', bridge, 'type', 'bridge');
  for (const service of Object.keys(SERVICES) as ServiceName[]) ip('addr', 'add', `${address(service)}/24`, 'dev', bridge);
  ip('link', 'set', bridge, 'up');
  const cable = (host: number): string => `hv${process.pid}-${host}`;
  for (let host = 0; host < hosts; host++) addHost(prefix + host, cable(host), bridge, hostAddress(host), address('clients'));
  const names = await createNames(address('clients'), address('models'));
  const rule = (host: number, service: ServiceName): number => RULES_FROM + (process.pid % 250) * 100 + host * 10 + SERVICES[service];
  return {
    address,
    hostAddress,
    wrapper: (host) => ['ip', 'netns', 'exec', prefix + host],
    async forward(service, port) {
      forwarders.push({ service, ...(await forwardTo(address(service), port)) });
    },
    cut(host, service) {
      if (rules.has(rule(host, service))) return;
      rules.add(rule(host, service));
      ip('rule', 'add', 'from', address(service), 'to', hostAddress(host), 'blackhole', 'pref', String(rule(host, service)));
    },
    mend(host, service) {
      if (rules.delete(rule(host, service))) ip('rule', 'del', 'pref', String(rule(host, service)));
    },
    unplug: (host) => ip('link', 'set', cable(host), 'down'),
    plug: (host) => ip('link', 'set', cable(host), 'up'),
    dropConnections(service) {
      for (const forwarder of forwarders) if (forwarder.service === service) for (const socket of forwarder.sockets) socket.resetAndDestroy();
    },
    names,
    async close() {
      for (const { server, sockets } of forwarders) {
        server.close();
        for (const socket of sockets) socket.destroy();
      }
      names.close();
      process.off('exit', tidy);
      tidy();
    },
  };
}

function addHost(name: string, cable: string, bridge: string, address: string, nameServer: string): void {
  ip('netns', 'add', name);
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  ip('link', 'set', cable, 'master', bridge, 'up');
  ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  ip('-n', name, 'link', 'set', 'eth0', 'up');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  // `ip netns exec` puts it in the place of /etc/resolv.conf, for that program alone.
  const folder = join('/etc/netns', name);
  if (!existsSync(folder)) mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'resolv.conf'), `nameserver ${nameServer}\noptions timeout:1 attempts:2\n`);
}

async function forwardTo(address: string, port: number): Promise<{ server: Server; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    sockets.add(near);
    near.pipe(far);
    far.pipe(near);
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    near.on('close', () => sockets.delete(near));
  });
  await new Promise<void>((done, failed) => server.once('error', failed).listen(port, address, done));
  return { server, sockets };
}

/** The port that a URL names. */
export const portOf = (url: string): number => Number(new URL(url).port);
