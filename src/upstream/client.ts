import { Agent, Dispatcher, ProxyAgent } from 'undici';
import { HermesError } from '../contracts/errors.ts';
import { HttpCall } from './http-call.ts';
import type { UpstreamClient } from './open-call.ts';
import { createProxyChoice, type ProxyChoice, type ProxySettings } from './proxy-choice.ts';

/** A connection that is not there by then never will be. */
const CONNECT_TIMEOUT_MS = 10_000;
const MOST_ADDRESSES = 1000;

export interface ConnectionOptions {
  connectTimeoutMs?: number;
  proxy?: ProxySettings;
}

export interface ClientOptions extends ConnectionOptions {
  dispatcher?: Dispatcher;
}

/** Calls upstreams over HTTP. One pool of connections an origin, made once and shared by all generations. */
export function createClient(options: ClientOptions = {}): UpstreamClient {
  const dispatcher = options.dispatcher ?? createDispatcher(options);
  const addresses = new Addresses();
  return {
    open(call) {
      const handler = new HttpCall();
      try {
        const { origin, path } = addresses.of(call.url);
        dispatcher.dispatch({ origin, path, method: call.method, headers: call.headers, body: call.body }, handler);
      } catch (cause) {
        handler.abort(
          new HermesError('upstream_error', 'The call to the model could not be made: its address or a header in its configuration is not valid.', { cause }),
        );
      }
      return handler;
    },
    close: () => dispatcher.destroy(),
  };
}

/** Addresses taken apart: a configuration has a few, and each call asks for one of them. */
class Addresses {
  readonly #known = new Map<string, { origin: string; path: string }>();

  of(url: string): { origin: string; path: string } {
    let address = this.#known.get(url);
    if (address === undefined) {
      const { origin, pathname, search } = new URL(url);
      address = { origin, path: pathname + search };
      // A provider may sign in the query: then no two are alike.
      if (this.#known.size >= MOST_ADDRESSES) this.#known.clear();
      this.#known.set(url, address);
    }
    return address;
  }
}

/** For every call that leaves the house: the proxy of the environment holds for all of them. */
export function createDispatcher({ connectTimeoutMs = CONNECT_TIMEOUT_MS, proxy }: ConnectionOptions): Dispatcher {
  // Time limits are each call's own (http-call.ts): undici's would not know a slow reader from a silent upstream.
  const agent = { connect: { timeout: connectTimeoutMs }, headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  if (!proxy?.http && !proxy?.https) return new Agent(agent);
  const choose = createProxyChoice(proxy);
  const proxies = [...new Set([proxy.http, proxy.https])].flatMap((uri) => (uri ? [[uri, new ProxyAgent({ ...agent, uri })] as const] : []));
  return new ByProxy(choose, new Map(proxies), new Agent(agent));
}

/** Each call by the proxy that is chosen for its address, or straight. */
class ByProxy extends Dispatcher {
  readonly #choose: ProxyChoice;
  readonly #proxies: ReadonlyMap<string, Dispatcher>;
  readonly #straight: Dispatcher;

  constructor(choose: ProxyChoice, proxies: ReadonlyMap<string, Dispatcher>, straight: Dispatcher) {
    super();
    this.#choose = choose;
    this.#proxies = proxies;
    this.#straight = straight;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const proxy = this.#choose(options.origin ?? '');
    return ((proxy && this.#proxies.get(proxy)) || this.#straight).dispatch(options, handler);
  }

  override async destroy(): Promise<void> {
    await Promise.all([this.#straight, ...this.#proxies.values()].map((dispatcher) => dispatcher.destroy()));
  }
}
