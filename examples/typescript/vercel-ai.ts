import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';

const hermes = createOpenAICompatible({
  name: 'hermes',
  baseURL: `${process.env.HERMES_URL ?? 'http://127.0.0.1:8080'}/v1`,
  apiKey: process.env.HERMES_KEY ?? '',
  includeUsage: true,
});

// What is hermes' own goes into headers: the SDK has no place for it in the body.
const headers = { 'x-hermes-session-id': 'vercel-1', 'x-hermes-tools': 'order.query' };
const { text, usage, response } = await generateText({ model: hermes('auto'), prompt: '帮我查一下订单20240515的状态', headers });
console.log('route:', response.headers?.['x-hermes-route']);
console.log('answered:', text, usage.totalTokens, 'tokens');

const { textStream } = streamText({ model: hermes('auto'), prompt: 'And in a few words?', headers: { 'x-hermes-session-id': 'vercel-1' } });
for await (const part of textStream) process.stdout.write(part);
console.log();
