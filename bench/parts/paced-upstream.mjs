// A model that writes event by event: POST /events/COUNT/MS/v1/chat/completions gives COUNT events, each in a write of its own, MS apart (0: in
// turns of the loop). Each says when it was written (`t=`, microseconds of the machine's monotonic clock). POST /whole/v1/chat/completions reads the
// whole body and answers with a completion (nginx, which does not read, is no upstream for large ones). Usage: node paced-upstream.mjs PORT
import http from 'node:http';

const frame = (choices, more = '') =>
  `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","system_fingerprint":"fp_bench","choices":${choices}${more}}\n\n`;
const FIRST = frame('[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]');
const LAST = `${frame('[{"index":0,"delta":{},"finish_reason":"stop"}]')}${frame('[]', ',"usage":{"prompt_tokens":120,"completion_tokens":96,"total_tokens":216}')}data: [DONE]\n\n`;
const WHOLE =
  '{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"bench-model","choices":[{"index":0,"message":{"role":"assistant","content":"Tomorrow."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":96,"total_tokens":216}}';
const event = () => frame(`[{"index":0,"delta":{"content":"t=${process.hrtime.bigint() / 1000n} "},"logprobs":null,"finish_reason":null}]`);

http
  .createServer((request, response) => {
    const [, , count, ms] = request.url.split('/').map(Number);
    request.resume();
    request.on('end', () => {
      if (request.url.startsWith('/whole/')) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': WHOLE.length });
        response.end(WHOLE);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(FIRST);
      // By a clock of its own: who were once late together must not be together for ever.
      const began = performance.now();
      let written = 0;
      const next = () => {
        if (response.destroyed) return;
        if (written++ === count) {
          response.end(LAST);
          return;
        }
        response.write(event());
        if (ms > 0) setTimeout(next, Math.max(0, began + written * ms - performance.now()));
        else setImmediate(next);
      };
      next();
    });
  })
  .listen(Number(process.argv[2]), '127.0.0.1', 4096);
