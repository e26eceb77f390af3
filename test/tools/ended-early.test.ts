import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type LogLine, type RunningApp, startApp, user } from '../app-kit.ts';
import { requestLines } from '../telemetry/trace-kit.ts';
import { type Toolbox, toolbox, until } from './tools-kit.ts';

describe('a request that ends while its tools run', () => {
  let box: Toolbox;
  let app: RunningApp;
  before(async () => {
    box = await toolbox({ slow: () => undefined });
    app = await startApp({ tools: [{ id: 'slow', endpoint: `${box.url}/slow`, side_effects: false }] });
  });
  after(async () => {
    await app.stop();
    await box.close();
  });

  for (const stream of [false, true])
    it(`still tells which model, tries and tool calls it had (stream: ${stream})`, async () => {
      const reply = await app.chat({ messages: user('[[tool slow {}]]'), tools: ['slow'], timeout: 0.4, stream });
      assert.match(reply.text, /deadline_exceeded/);
      const id = reply.headers.get('x-request-id');
      const own = (): LogLine | undefined => requestLines(app).find((line) => line.request_id === id);
      await until(own);
      const { tool_calls, model, attempts, upstream } = own() as LogLine;
      const [call] = tool_calls as { tool: string; request_id: string; status: string; tries: number }[];
      assert.deepEqual([call?.tool, call?.status, model, attempts, typeof upstream], ['slow', 'aborted', 'fast_model', 1, 'string']);
      assert.equal(call?.request_id, box.hits.at(-1)?.body.request_id);
    });
});
