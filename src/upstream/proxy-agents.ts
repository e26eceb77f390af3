import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { HttpProxyAgent, HttpsProxyAgent } from 'hpagent';
import { createProxyChoice, type ProxySettings } from './proxy-choice.ts';

/** For what is called by Node's own client instead of undici. By a tunnel (CONNECT) where a proxy is to be taken, for plain HTTP too. */
export interface Agents {
  /** Its connections are kept. */
  kept(url: string): HttpAgent;
  /** For a connection that is used once; undefined: Node's default does. */
  once(url: string): HttpAgent | undefined;
  /** `kept` where calls to this address go by a proxy; undefined: none. */
  proxied(url: string): HttpAgent | undefined;
  close(): void;
}

export function createAgents(settings: ProxySettings | undefined): Agents {
  const choose = createProxyChoice(settings);
  const known = new Map<string, HttpAgent>();
  const kept = (url: string): HttpAgent => {
    const proxy = choose(url);
    const secure = isSecure(url);
    const key = `${secure} ${proxy}`;
    let agent = known.get(key);
    if (agent === undefined) {
      agent = proxy === undefined ? straight(secure) : tunnel(secure, proxy, true);
      known.set(key, agent);
    }
    return agent;
  };
  return {
    kept,
    proxied: (url) => (choose(url) === undefined ? undefined : kept(url)),
    once(url) {
      const proxy = choose(url);
      return proxy === undefined ? undefined : tunnel(isSecure(url), proxy, false);
    },
    close() {
      for (const agent of known.values()) agent.destroy();
    },
  };
}

function isSecure(url: string): boolean {
  return /^(?:https|wss):/.test(url);
}

function straight(secure: boolean): HttpAgent {
  return secure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
}

function tunnel(secure: boolean, proxy: string, keepAlive: boolean): HttpAgent {
  return secure ? new HttpsProxyAgent({ keepAlive, proxy }) : new HttpProxyAgent({ keepAlive, proxy });
}
