import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Log } from '../contracts/telemetry.ts';
import type { Layer, LayerFault } from './entry.ts';
import { Scope, settled } from './scope.ts';
import { type Onion, Step } from './step.ts';

export type Terminal = (exchange: Exchange) => Promise<Answer>;
export type Pipeline = (exchange: Exchange) => Promise<Answer>;

/**
 * Composes layers into one onion around `terminal`. The result never rejects: a failure is an answer with `error`.
 * A scope is the root exchange or a fork; its `onEnd`s run inside out, once, before its reader learns of the end.
 * A layer without hooks (a step that the configuration leaves off) is not entered at all.
 */
export function compose(layers: readonly Layer[], terminal: Terminal, log: Log): Pipeline {
  const active = layers.filter(({ hooks }) => hooks.handle || hooks.onChunk || hooks.onEnd);
  const fault: LayerFault = ({ layer, exchange }, thrown) => {
    if (thrown instanceof HermesError) return thrown;
    const told = { request_id: exchange.id, x_request_id: exchange.trace.id, plugin: layer.name, err: thrown, optional: layer.optional };
    log.error(told, layer.optional ? 'plugin threw and was skipped' : 'plugin threw');
    return new HermesError('plugin_error', `The plugin "${layer.name}" failed on this request; the log has the details under this request id.`, {
      cause: thrown,
    });
  };
  const onion: Onion = {
    fault,
    runScope: (exchange, from) => {
      const scope = new Scope(exchange, fault);
      return onion.dispatch(scope, from).then(scope.finish);
    },
    // Plain promises, not async functions: each await here is paid by every layer of every request.
    dispatch: (scope, index) => {
      const layer = active[index];
      if (layer === undefined) return runTerminal(scope, terminal);
      const step = new Step(onion, scope, layer, index);
      if (layer.local && !step.begin(layer.local)) return step.skipped();
      scope.enter(step);
      return layer.hooks.handle === undefined ? onion.dispatch(scope, index + 1).then(() => scope.pass(step)) : step.run();
    },
  };
  return (exchange) => onion.runScope(exchange, 0);
}

async function runTerminal(scope: Scope, terminal: Terminal): Promise<Answer> {
  const { exchange } = scope;
  scope.inside++;
  try {
    const answer = await terminal(exchange);
    if (exchange.answer !== answer) exchange.answer = answer;
  } catch (thrown) {
    exchange.answer = { error: toHermesError(thrown) };
  }
  scope.inside--;
  return settled(exchange);
}
