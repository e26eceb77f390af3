import type { ModelEntry } from '../../src/contracts/config.ts';
import type { UpstreamTarget } from '../../src/contracts/exchange.ts';
import { rawAnswer } from '../../src/pipeline/answer.ts';
import openai from '../../src/providers/openai.ts';
import { createClient } from '../../src/upstream/client.ts';
import { createSend } from '../../src/upstream/send.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type House, house, target } from './failover-kit.ts';

export interface SocketHouse extends House {
  fake: FakeUpstream;
  close(): Promise<void>;
}

/** Failover and `send` over real sockets: every upstream is a model of one fake server, named after its id. */
export async function socketHouse(models: (at: (id: string, over?: Partial<UpstreamTarget>) => UpstreamTarget) => ModelEntry[]): Promise<SocketHouse> {
  const fake = await createFakeUpstream();
  const client = createClient();
  const environment = { now: Date.now, uuid: () => 'id', random: () => 0.1 };
  const send = createSend({ client, provider: () => openai, environment, books: { record: () => undefined }, rawAnswer });
  const at = (id: string, over: Partial<UpstreamTarget> = {}): UpstreamTarget => target(id, { apiBase: fake.url, modelName: id, apiKey: 'sk-test', ...over });
  return {
    ...house(models(at), {}, { environment, send }),
    fake,
    async close() {
      await client.close();
      await fake.close();
    },
  };
}
