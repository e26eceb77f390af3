/** As the environment gives them: `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`. */
export interface ProxySettings {
  http?: string | undefined;
  https?: string | undefined;
  no?: string | undefined;
}
/** The proxy that calls to this address go by; undefined: none. */
export type ProxyChoice = (url: string | URL) => string | undefined;

const PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443' };

/**
 * The one place that decides whether a call goes by a proxy: `NO_PROXY` lists hosts (with what is beneath them, with or without
 * a leading dot or `*.`), each with a port or without, or is `*`; without `HTTPS_PROXY` the other one is taken.
 */
export function createProxyChoice({ http, https = http, no = '' }: ProxySettings = {}): ProxyChoice {
  const straight = no.split(/[,\s]+/).flatMap((entry) => {
    const [, host = '', port] = /^(.+?)(?::(\d+))?$/.exec(entry) ?? [];
    return host === '' ? [] : [{ host: host.replace(/^\*?\./, '').toLowerCase(), port }];
  });
  return (url) => {
    const { protocol, hostname, port } = new URL(url);
    const at = port || PORTS[protocol];
    const isStraight = straight.some(
      (entry) => (entry.port === undefined || entry.port === at) && (entry.host === '*' || hostname === entry.host || hostname.endsWith(`.${entry.host}`)),
    );
    if (isStraight) return undefined;
    return protocol === 'https:' || protocol === 'wss:' ? https : http;
  };
}
