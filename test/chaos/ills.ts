import type { Behaviour } from '../fake-upstream.ts';

const role = { role: 'assistant' as const, content: '' };

/** What goes wrong in the field: refusals of every kind, resets, silence, errors after the first event, answers cut half-way. */
export const ills: Behaviour[] = [
  (reply) => reply.reset(),
  (reply) => reply.stall(),
  (reply) => reply.error(500),
  (reply) => reply.error(429, 'slow down', { headers: { 'retry-after-ms': '30' } }),
  (reply) => reply.error(529),
  (reply, call) => (call.body.stream ? reply.stream([role, { error: { message: 'broke', type: 'server_error' } }], { done: false }) : reply.json('<html>')),
  async (reply, call) => {
    if (!call.body.stream) return reply.reset();
    await reply.stream([role, { content: 'half ' }], { done: false, end: false });
    await reply.cut(20);
  },
];

/** mulberry32: the same run every time. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A behaviour that goes wrong this often. */
export function sometimesIll(share: number, random: () => number, well: Behaviour): Behaviour {
  return (reply, call) => {
    const ill = random() < share ? ills[Math.floor(random() * ills.length)] : undefined;
    return (ill ?? well)(reply, call);
  };
}
