import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createDotKernel, kernelWidth } from '../../src/routing/embedding/dot-kernel.ts';
import { toUnitVector } from '../../src/routing/embedding/embedder.ts';
import { ExampleMatrix } from '../../src/routing/embedding/example-matrix.ts';

/** Every example multiplied out. */
function exhaustive(list: readonly Float32Array[], question: Float32Array, topK: number): number {
  const products = list.map((vector) => vector.reduce((sum, value, at) => sum + value * (question[at] as number), 0)).sort((a, b) => b - a);
  const best = products.slice(0, topK);
  return best.reduce((sum, value) => sum + value, 0) / best.length;
}
const component = fc.double({ min: -1, max: 1, noNaN: true });
const unit = (dimensions: number) =>
  fc.array(component, { minLength: dimensions, maxLength: dimensions }).map((values) => toUnitVector(values) ?? toUnitVector([1, ...values.slice(1)]));
const searches = fc.integer({ min: 1, max: 40 }).chain((dimensions) =>
  fc.record({
    question: unit(dimensions),
    lists: fc.array(fc.array(unit(dimensions), { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 5 }),
    topK: fc.integer({ min: 1, max: 4 }),
  }),
);

describe('the search over examples', () => {
  it('says of every rule what multiplying out every example would say', () => {
    fc.assert(
      fc.property(searches, component, ({ question, lists, topK }, wanted) => {
        const compared = new ExampleMatrix(lists as Float32Array[][]).compare(question as Float32Array);
        for (const [entry, list] of lists.entries()) {
          const truth = exhaustive(list as Float32Array[], question as Float32Array, topK);
          const { least, most } = compared.bounds(entry, topK);
          assert.ok(least <= truth && truth <= most, `${truth} is not within ${least} and ${most}`);
          assert.ok(Math.abs(compared.score(entry, topK) - truth) < 1e-9);
          if (Math.abs(truth - wanted) > 1e-9) assert.equal(compared.reaches(entry, topK, wanted), truth >= wanted);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('tells a score that is exactly the threshold from one just below', () => {
    const compared = new ExampleMatrix([[Float32Array.of(1, 0)]]).compare(Float32Array.of(0.75, Math.sqrt(1 - 0.75 ** 2)));
    assert.equal(compared.reaches(0, 1, 0.75), true);
    assert.equal(compared.reaches(0, 1, 0.75 + 1e-12), false);
  });

  it('sums products of 8 bits without overflow, whatever the width', () => {
    for (const dimensions of [1, 15, 16, 17, 3_072]) {
      const width = kernelWidth(dimensions);
      const kernel = createDotKernel(3, width);
      for (const [row, value] of [127, -127, 5].entries()) kernel.rows.fill(value, row * width, row * width + dimensions);
      kernel.question.fill(-127, 0, dimensions);
      assert.deepEqual(
        [...kernel.sums()],
        [127, -127, 5].map((value) => value * -127 * dimensions),
      );
    }
  });

  it('keeps a question apart from the one that was asked meanwhile', () => {
    const matrix = new ExampleMatrix([[Float32Array.of(1, 0)], [Float32Array.of(0, 1)]]);
    const [first, second] = [matrix.compare(Float32Array.of(1, 0)), matrix.compare(Float32Array.of(0, 1))];
    assert.deepEqual(
      [first, second].map((compared) => [compared.score(0, 1), compared.score(1, 1)]),
      [
        [1, 0],
        [0, 1],
      ],
    );
  });
});
