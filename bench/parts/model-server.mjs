// node bench/parts/model-server.mjs PORT: a steady model, a slow and failing rival that wants to call tools, the tool, and what was asked of each.
import { createServer } from 'node:http';

const LIVE_MS = 40;
const RIVAL_MS = 1_500;
const counts = { live: 0, rival: 0, tool: 0 };

const answer = (model, message) =>
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1_790_000_000,
    model,
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
    usage: { prompt_tokens: 120, completion_tokens: 96, total_tokens: 216 },
  });
const call = { id: 'call_1', type: 'function', function: { name: 'order_query', arguments: '{"order_id":"7"}' } };

createServer((request, response) => {
  let body = '';
  request.on('data', (data) => {
    body += data;
  });
  request.on('end', () => {
    const reply = (status, text) => response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    if (request.url === '/counts') return reply(200, JSON.stringify(counts));
    if (request.url === '/tool') {
      counts.tool++;
      return reply(200, '{"status":"sent"}');
    }
    const { model, tools } = JSON.parse(body);
    counts[model]++;
    if (model === 'live') return setTimeout(() => reply(200, answer(model, { content: 'It is on its way. '.repeat(20) })), LIVE_MS);
    const fails = counts.rival % 2 === 0;
    const message = tools
      ? { content: null, tool_calls: [{ ...call, function: { ...call.function, name: tools[0].function.name } }] }
      : { content: 'Dear words. '.repeat(20) };
    return setTimeout(() => (fails ? reply(500, '{"error":{"message":"down"}}') : reply(200, answer(model, message))), RIVAL_MS);
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
