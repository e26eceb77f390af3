import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createInStep } from '../../src/wire/in-step.ts';

describe('going on in step', () => {
  it('runs each step of all that came in one turn before the next step of any', async () => {
    const inStep = createInStep();
    const said: string[] = [];
    const run = async (name: string): Promise<void> => {
      await new Promise<void>((resolve) => inStep(resolve));
      said.push(`${name}1`);
      await undefined;
      said.push(`${name}2`);
      await undefined;
      said.push(`${name}3`);
    };
    await Promise.all(['a', 'b', 'c'].map(run));
    assert.deepEqual(said, ['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3']);
  });

  it('goes on before a timer, and lets what comes meanwhile wait for the next turn', async () => {
    const inStep = createInStep();
    const said: string[] = [];
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        setTimeout(() => {
          said.push('timer');
          resolve();
        }, 0);
        inStep(() => {
          said.push('first');
          inStep(() => said.push('second'));
        });
      }, 0);
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(said.slice(0, 1), ['first']);
    assert.deepEqual([...said].sort(), ['first', 'second', 'timer']);
  });
});
