import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${process.env.HERMES_URL ?? 'http://127.0.0.1:8080'}/v1`, apiKey: process.env.HERMES_KEY ?? '' });

// Routed by the rules; what is hermes' own goes into the body beside OpenAI's.
const { data, response } = await client.chat.completions
  .create({
    model: 'auto',
    messages: [{ role: 'user', content: '帮我查一下订单20240515的状态' }],
    ...{ session_id: 'user-3421', tools: ['order.query'] as never },
  })
  .withResponse();
console.log('route:', response.headers.get('x-hermes-route'), 'model:', response.headers.get('x-hermes-model'));
console.log(data.choices[0]?.message.content);

const stream = await client.chat.completions.create({
  model: 'auto',
  messages: [{ role: 'user', content: 'And in a few words?' }],
  stream: true,
  ...{ session_id: 'user-3421' },
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');
console.log();
