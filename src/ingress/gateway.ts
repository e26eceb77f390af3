import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdminReply, AdminRequest } from '../contracts/admin.ts';
import type { Door } from '../contracts/door.ts';
import type { Ending } from '../contracts/ending.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { Rooms } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import type { Generation } from '../pipeline/generation.ts';
import type { Roster, Rostered } from '../wire/roster.ts';
import type { Admission } from './admission.ts';

/** All that ingress needs of the house. */
export interface Gateway {
  /** The generation that new exchanges begin with. */
  generation(): Generation;
  readonly doors: ReadonlyMap<string, Door>;
  readonly rooms: Rooms;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly environment: Environment;
  readonly draining: () => boolean;
  /** Nobody is taken in any more: every answer is the last on its connection. */
  readonly closing: () => boolean;
  /** Exchanges whose answer is not over. */
  readonly inFlight: Roster<Exchange & Rostered>;
  readonly admission: Admission;
  /** Undefined: ready; else what is missing. */
  notReady(): Promise<string | undefined>;
  admin(request: AdminRequest): Promise<AdminReply | undefined>;
  console(path: string): { contentType: string; bytes: Uint8Array; headers: Record<string, string> } | undefined;
  proxy(exchange: Exchange, request: IncomingMessage, response: ServerResponse): Promise<void>;
  ended(ending: Ending): void;
  /** A request that was not meant for a model is over: models, administration, what is not there. */
  looked(ending: Ending): void;
}
