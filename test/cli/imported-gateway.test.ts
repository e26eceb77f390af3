import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { fromLitellm } from '../../src/cli/import/from-litellm.ts';
import { KEY, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/litellm/', import.meta.url));
const VARIABLES = ['OPENAI_API_KEY', 'DEEPSEEK_API_KEY', 'AZURE_EU_KEY', 'AZURE_US_KEY', 'GROQ_API_KEY', 'GATEWAY_KEY'];

interface Entry {
  provider?: string;
  target?: string;
  api_base?: string;
}
interface Model extends Entry {
  id: string;
  aliases?: string[];
  failover?: { upstreams?: Entry[] };
}

describe('a gateway of an imported LiteLLM configuration', () => {
  let openai: FakeUpstream;
  let anthropic: FakeAnthropic;
  before(async () => {
    openai = await createFakeUpstream({ strict: false });
    anthropic = await createFakeAnthropic(() => [{ type: 'text', text: 'echo: hi' }]);
  });
  after(async () => {
    await openai.close();
    await anthropic.close();
  });
  for (const name of readdirSync(FIXTURES)) {
    it(`answers under every name that callers used, whole and streamed: ${name}`, async () => {
      const config = fromLitellm(parse(readFileSync(join(FIXTURES, name), 'utf8'))).config as { models: Model[] };
      // The vendors stand on this machine; everything else is as it was imported.
      for (const model of config.models)
        for (const entry of [model, ...(model.failover?.upstreams ?? [])])
          if (entry.provider ?? entry.target) entry.api_base = (entry.provider ?? entry.target) === 'anthropic' ? anthropic.url : openai.url;
      const env = {
        ...Object.fromEntries(VARIABLES.map((variable) => [variable, `sk-${variable}`])),
        ...{ ANTHROPIC_API_KEY: 'sk-ant', LITELLM_MASTER_KEY: KEY },
      };
      const app = await startApp(config, { env });
      try {
        const names = config.models.flatMap(({ id, aliases = [] }) => [id, ...aliases]);
        for (const model of names)
          for (const stream of [false, true]) {
            const answer = await app.chat({ model, stream, messages: user('hi') });
            assert.equal(answer.status, 200, `${model}: ${answer.text}`);
            assert.equal(saidIn(answer), 'echo: hi', model);
          }
        const listed = (await app.fetch('/v1/models')).json as { data?: { id: string }[] };
        for (const { id } of config.models)
          assert.ok(
            listed.data?.some((model) => model.id === id),
            id,
          );
        assert.deepEqual(anthropic.violations, []);
      } finally {
        await app.stop();
      }
    });
  }
});
