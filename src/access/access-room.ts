import type { Config, Priority } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Caller, Exchange, Principal } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { AccessRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { allows } from '../wire/patterns.ts';
import { KeyRing } from './keys.ts';
import { Nonces } from './nonces.ts';
import { Refusals } from './refusals.ts';
import type { RunTimeKeys } from './run-time-keys.ts';
import { verifySignature } from './signatures.ts';

export interface AccessDeps {
  hot: Pick<HotStore, 'set'>;
  log: Log;
  metrics: Metrics;
  environment: Environment;
  /** Keys beside those of the configuration. */
  runTimeKeys?: RunTimeKeys;
}

/** Who asks, and what it may assert. */
export function createAccessRoom({ hot, log, metrics, environment, runTimeKeys }: AccessDeps): AccessRoom {
  const refusals = new Refusals({ log, metrics, environment });
  const nonces = new Nonces(hot, environment);
  // Derived from a generation's configuration, so it goes with it.
  const rings = new WeakMap<Config, KeyRing>();
  const ringOf = (config: Config): KeyRing => {
    let ring = rings.get(config);
    if (ring === undefined) {
      ring = new KeyRing(config);
      rings.set(config, ring);
    }
    return ring;
  };
  return {
    allows,
    toCaller,
    authenticate(config, credential, request) {
      if (credential === undefined) {
        const refusal = new HermesError('invalid_api_key', 'You did not provide an API key. Send it as "Authorization: Bearer YOUR_KEY".');
        throw refusals.audit('missing', refusal, request);
      }
      if (credential.kind === 'signature') {
        return verifySignature(config, credential, request, nonces, environment.now()).catch((thrown: unknown) => {
          throw refusals.audit('signature', thrown, request);
        });
      }
      if (credential.principal !== undefined) return credential.principal;
      try {
        const principal = ringOf(config).find(credential.key, environment.now());
        credential.principal = principal;
        return principal;
      } catch (thrown) {
        if (runTimeKeys === undefined) throw refusals.audit('key', thrown, request);
        return addedAtRunTime(runTimeKeys, credential.key, thrown).catch((refusal: unknown) => {
          throw refusals.audit('key', refusal, request);
        });
      }
    },
  };
}

/** The configuration does not know it; `refusal` holds when nobody else does. */
async function addedAtRunTime(keys: RunTimeKeys, key: string, refusal: unknown): Promise<Principal> {
  const principal = await keys.find(key);
  if (principal === undefined) throw refusal;
  return principal;
}

function toCaller({ ask, request }: Pick<Exchange, 'ask' | 'request'>, principal: Principal): Caller {
  const service = assertedAmong(ask.serviceType, principal.service, principal.services, 'service_type');
  const project = assertedAmong(ask.project, principal.project, principal.projects, 'project');
  if (ask.userLevel !== undefined && !allows(principal.userLevels, ask.userLevel)) forbid('user_level', ask.userLevel);
  if (ask.priority !== undefined && !allows(principal.priorities, ask.priority)) forbid('priority', ask.priority);
  const priority: Priority = ask.priority ?? 'normal';
  return { service, project, user: ask.user ?? (request.user || undefined), userLevel: ask.userLevel, priority };
}

function assertedAmong(asserted: string | undefined, own: string, among: readonly string[], param: string): string {
  if (asserted === undefined || asserted === own) return own;
  if (!allows(among, asserted)) forbid(param, asserted);
  return asserted;
}

function forbid(param: string, value: string): never {
  throw new HermesError(
    'permission_denied',
    `This key may not ask for ${param} "${value.slice(0, 64)}"; leave it out, or let the key's configuration name it.`,
    { param },
  );
}
