import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: process.env.HERMES_URL ?? 'http://127.0.0.1:8080', apiKey: process.env.HERMES_KEY ?? '' });

const message = await client.messages.create({ model: 'auto', max_tokens: 200, messages: [{ role: 'user', content: 'Hello, who answers?' }] });
console.log(message.content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join(''));

const stream = client.messages.stream({ model: 'auto', max_tokens: 200, messages: [{ role: 'user', content: 'And streamed?' }] });
stream.on('text', (text) => process.stdout.write(text));
const { stop_reason } = await stream.finalMessage();
console.log(`\n${stop_reason}`);
