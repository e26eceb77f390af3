// npm run bench [-- --quick] [-- --only json,sse]: hermes beside the leanest proxy that Node can be, in one run, A B A B, medians; figures are ratios.
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { startNginx, stopAll } from './parts/servers.ts';
import { createSubjects, KEY } from './parts/subjects.ts';
import { type Load, type Measured, measure, median } from './parts/wrk.ts';

const quick = process.argv.includes('--quick');
const onlyAt = process.argv.indexOf('--only');
const only = onlyAt < 0 ? undefined : process.argv[onlyAt + 1]?.split(',');
const rounds = quick ? 3 : 5;
const seconds = quick ? 2 : 4;
const warmUp = quick ? 3 : 6;

/** 800 bytes: a system prompt, a short talk and a question. */
const BODY = {
  model: 'auto',
  messages: [
    { role: 'system', content: 'You are the assistant of an online shop. Answer briefly, in the language of the question, and never make up an order.' },
    { role: 'user', content: 'Hello, I bought a pair of shoes last week.' },
    { role: 'assistant', content: 'Hello! How can I help you with them?' },
    { role: 'user', content: `Where is my order 20240515 now? ${'It was to arrive yesterday and I have not heard a thing. '.repeat(6)}` },
  ],
  temperature: 0.2,
};

interface Scenario {
  name: string;
  title: string;
  load: Load;
}
const load = (path: string, body: object): Load => ({
  path,
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
  connections: 32,
  seconds,
});
const CHAT = '/v1/chat/completions';
const SCENARIOS: Scenario[] = [
  { name: 'json', title: 'JSON chat', load: load(CHAT, BODY) },
  { name: 'sse', title: 'SSE chat, 50 events in one packet', load: load(CHAT, { ...BODY, model: 'stream_model', stream: true }) },
  {
    name: 'body',
    title: 'JSON chat, a body of 100 kB',
    load: load(CHAT, { ...BODY, messages: [...BODY.messages, { role: 'user', content: 'Where is it? '.repeat(8_000) }] }),
  },
  { name: 'anthropic', title: 'JSON chat, Anthropic upstream (the bare proxy: OpenAI)', load: load(CHAT, { ...BODY, model: 'claude_model' }) },
  {
    name: 'anthropic-sse',
    title: 'SSE chat, Anthropic upstream, 50 events in one packet (the bare proxy: OpenAI)',
    load: load(CHAT, { ...BODY, model: 'claude_stream_model', stream: true }),
  },
];

const nginx = await startNginx();
const subjects = await createSubjects(nginx);
const lines = [
  `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, nginx as upstream, wrk with 32 connections, ${rounds} rounds of ${seconds} s`,
];
for (const scenario of SCENARIOS.filter(({ name }) => !only || only.includes(name))) {
  const results = new Map<string, Measured[]>();
  for (let round = -1; round < rounds; round++) {
    for (const subject of subjects.for(scenario.name)) {
      const headers = { ...scenario.load.headers, ...subject.headers };
      // Before the first round comes a warm-up: a compiler at work is no steady state.
      const measured = await measure(subject, {
        ...scenario.load,
        headers,
        path: `${subject.prefix}${scenario.load.path}`,
        seconds: round < 0 ? warmUp : seconds,
      });
      if (measured.errors > 0 && subject.name !== 'portkey') throw new Error(`${subject.name} gave ${measured.errors} errors in ${scenario.title}`);
      if (round >= 0) results.set(subject.name, [...(results.get(subject.name) ?? []), measured]);
    }
    process.stderr.write(`${scenario.title}: round ${round + 1} of ${rounds}\n`);
  }
  lines.push(
    '',
    `### ${scenario.title}`,
    '',
    '| | requests/s | to bare | p50 ms | p99 ms | p99 to bare | CPU µs/request | RSS MB | errors |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  );
  const bare = results.get('bare proxy') ?? [];
  for (const [name, list] of results) {
    const ratio = (pick: (m: Measured) => number): string => median(list.map((m, index) => pick(m) / pick(bare[index] ?? m))).toFixed(2);
    const middle = (pick: (m: Measured) => number, digits = 0): string => median(list.map(pick)).toFixed(digits);
    lines.push(
      `| ${name} | ${middle((m) => m.requestsPerSecond)} | ${ratio((m) => m.requestsPerSecond)} | ${middle((m) => m.p50Ms, 2)} | ${middle((m) => m.p99Ms, 2)} | ${ratio((m) => m.p99Ms)} | ${middle((m) => m.cpuMicros)} | ${middle((m) => m.rssMb)} | ${middle((m) => m.errors)} |`,
    );
  }
}
const text = `${lines.join('\n')}\n`;
process.stdout.write(text);
writeFileSync(join(import.meta.dirname, 'results.md'), `# npm run bench\n\n${text}`);
stopAll();
process.exit(0);
