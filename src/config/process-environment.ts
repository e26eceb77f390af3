import type { Environment } from './environment.ts';

/** The process's environment with `more` beneath it: what it says itself wins. */
export function withProcessEnvironment(more: Environment): Environment {
  return { ...more, ...process.env };
}
