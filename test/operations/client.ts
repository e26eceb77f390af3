import { type Agent, request } from 'node:http';
import { KEY } from '../app-kit.ts';

export interface Result {
  /** 0: the connection failed. */
  status: number;
  text: string;
  sessionMessages: number;
  headers: Record<string, string | string[] | undefined>;
}

/** One request whose failure is a result too. `agent` decides whether connections are kept. */
export function ask(agent: Agent, url: string, body?: object, method = body ? 'POST' : 'GET'): Promise<Result> {
  const text = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve) => {
    const failed = (error: Error): void => resolve({ status: 0, text: error.message, sessionMessages: -1, headers: {} });
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    request(url, { method, agent, headers }, (response) => {
      let answer = '';
      response.on('data', (data) => (answer += data)).on('error', failed);
      response.on('end', () => {
        const sessionMessages = Number(response.headers['x-hermes-session-messages'] ?? -1);
        resolve({ status: response.statusCode ?? 0, text: answer, sessionMessages, headers: response.headers });
      });
    })
      .on('error', failed)
      .end(text);
  });
}

export function chat(agent: Agent, base: string, body: object): Promise<Result> {
  return ask(agent, `${base}/v1/chat/completions`, body);
}

/** Whole: a stream has come to its end. */
export function isServed({ status, text }: Result): boolean {
  return status === 200 && (!text.startsWith('data:') || text.trimEnd().endsWith('data: [DONE]'));
}
