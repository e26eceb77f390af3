import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseProviderUsage } from '../../src/accounting/provider-usage.ts';
import { type BookedUsage, verifyUsage } from '../../src/accounting/verify.ts';

const booked = (over: Partial<BookedUsage> = {}): BookedUsage => ({
  model: 'gpt-4o',
  provider: 'openai',
  calls: 3,
  estimatedCalls: 0,
  input: 100,
  cached: 20,
  output: 30,
  ...over,
});

describe("a provider's exported usage", () => {
  it('is read from the pages of the OpenAI usage API', () => {
    const page = {
      object: 'page',
      data: [
        {
          object: 'bucket',
          start_time: 1_796_083_200,
          end_time: 1_796_169_600,
          results: [
            {
              object: 'organization.usage.completions.result',
              input_tokens: 100,
              output_tokens: 30,
              input_cached_tokens: 20,
              num_model_requests: 3,
              model: 'gpt-4o-2024-08-06',
            },
          ],
        },
      ],
      has_more: false,
    };
    const line = { day: '2026-12-01', model: 'gpt-4o-2024-08-06', requests: 3, input: 100, cached: 20, output: 30 };
    assert.deepEqual(parseProviderUsage(JSON.stringify(page)), [line]);
    assert.deepEqual(parseProviderUsage(`${JSON.stringify(page)}\n${JSON.stringify(page)}\n`), [line, line], 'one page a line');
  });
  it("is read from Anthropic's, whose input excludes what was cached", () => {
    const page = {
      data: [
        {
          starting_at: '2026-12-01T00:00:00Z',
          ending_at: '2026-12-02T00:00:00Z',
          results: [
            {
              model: 'claude-sonnet-4-5',
              uncached_input_tokens: 70,
              cache_read_input_tokens: 20,
              cache_creation: { ephemeral_1h_input_tokens: 4, ephemeral_5m_input_tokens: 6 },
              output_tokens: 30,
            },
          ],
        },
      ],
    };
    assert.deepEqual(parseProviderUsage(JSON.stringify(page)), [
      { day: '2026-12-01', model: 'claude-sonnet-4-5', requests: undefined, input: 100, cached: 20, output: 30 },
    ]);
  });
  it('is read from CSV, quoted or not', () => {
    const text =
      '\ufeffDate,Model,Num_Model_Requests,Input_Tokens,Output_Tokens,Input_Cached_Tokens\r\n2026-12-01,"gpt-4o",3,"1,000",30,20\r\n\r\n2026-12-02,"a ""b"", c",,1,2,\r\n';
    assert.deepEqual(parseProviderUsage(text), [
      { day: '2026-12-01', model: 'gpt-4o', requests: 3, input: 1000, cached: 20, output: 30 },
      { day: '2026-12-02', model: 'a "b", c', requests: undefined, input: 1, cached: undefined, output: 2 },
    ]);
  });
  it('without usage in it says what is missing', () => {
    for (const text of ['', 'a,b\n1,2', '{"data":[]}', '[{"model":"x"}]'])
      assert.throws(() => parseProviderUsage(text), /needs a model and its input_tokens/, text);
  });
});

describe('hermes against its provider', () => {
  const line = { day: '2026-12-01', model: 'gpt-4o-2024-08-06', requests: 3, input: 60, cached: 20, output: 30 };

  it('agrees when every class of tokens does, over days and dated names', () => {
    const [row, ...others] = verifyUsage([line, { ...line, model: 'gpt-4o', input: 40, cached: undefined, output: 0 }], [booked()]);
    assert.deepEqual([row?.model, row?.agrees, others.length], ['gpt-4o', true, 0]);
    assert.equal(row?.theirs?.requests, 6, 'requests are shown, not judged');
  });
  it('does not take one model for another that begins alike', () => {
    const rows = verifyUsage([{ ...line, model: 'gpt-4o-mini' }], [booked(), booked({ model: 'gpt-4o-mini', input: 60 })]);
    assert.deepEqual(
      rows.map(({ model, agrees }) => [model, agrees]),
      [
        ['gpt-4o', false],
        ['gpt-4o-mini', true],
      ],
    );
  });
  it('differs by one token, by what only one side knows, and not by another provider', () => {
    assert.equal(verifyUsage([{ ...line, input: 101 }], [booked()])[0]?.agrees, false);
    assert.equal(verifyUsage([{ ...line, input: 100, cached: 19 }], [booked()])[0]?.agrees, false);
    assert.equal(verifyUsage([line], [])[0]?.agrees, false);
    const rows = verifyUsage([{ ...line, input: 100 }], [booked(), booked({ model: 'claude', provider: 'anthropic' })]);
    assert.deepEqual(
      rows.map(({ model }) => model),
      ['gpt-4o'],
    );
  });
});
