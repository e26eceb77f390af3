import type { Command } from 'commander';
import { createLog } from '../telemetry/log.ts';
import { runWorker } from '../workers/worker.ts';
import { boundHeap } from './bound-heap.ts';
import { endSoon } from './until-stopped.ts';

/** Not for people: `serve` starts it, as often as `server.workers` says. */
export function registerWorkerCommand(program: Command): void {
  program.command('worker', { hidden: true }).action(async () => {
    const grow = boundHeap();
    await runWorker(createLog, grow);
    endSoon();
  });
}
