import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { ConfigReader } from '../app/read-config.ts';
import { tellReload } from '../app/tell-reload.ts';
import type { StopOptions } from '../app.ts';
import type { LoadedConfig } from '../config/load.ts';
import { createReloader, type Reloader, type ReloadResult } from '../config/reload.ts';
import type { Config } from '../contracts/config.ts';
import type { Gauge, Log, Metrics, MetricsFormat } from '../contracts/telemetry.ts';
import { BackOff } from './back-off.ts';
import { type Ended, Member, type PrimaryAnswers } from './member.ts';
import type { Address, Settings } from './protocol.ts';
import { Totals } from './totals.ts';

export interface PrimaryOptions {
  reader: ConfigReader;
  loaded: LoadedConfig;
  log: Log;
  metrics: Metrics;
  /** Milliseconds, monotonic. */
  now(): number;
}

/** For one worker's answer: a hung one must not hold up the others' views. */
const ANSWER_MS = 1500;
const RELOAD_MS = 30_000;
/** Beyond what the configuration gives requests to finish. */
const STOP_MARGIN_MS = 10_000;
/** A worker whose place is taken gives its idle connections time for a last answer. */
const REPLACED: StopOptions = { idleMs: 3000, lingerMs: 0 };
const LINGER_MS = 300;
/** As one process by itself does (`cli/serve.ts`): a balancer may be sending on what looks idle from here. */
const IDLE_MS = 2000;

/**
 * Keeps `server.workers` processes alive on one port. It serves nothing itself: it takes connections in (in turn for each worker),
 * watches the configuration, replaces workers that end, and knows what all of them have counted.
 */
export class Primary {
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #now: () => number;
  readonly #reloader: Reloader;
  readonly #members = new Set<Member>();
  readonly #backOffs = new Map<number, BackOff>();
  readonly #totals = new Totals<Member>();
  readonly #alive: Gauge;
  #settings: Settings;
  #config: Config;
  #age = 0;
  #stopping = false;
  #replacing: Promise<void> = Promise.resolve();

  constructor({ reader, loaded, log, metrics, now }: PrimaryOptions) {
    this.#log = log;
    this.#metrics = metrics;
    this.#now = now;
    this.#config = loaded.config;
    const { host, port } = loaded.config.server;
    this.#settings = { file: loaded.config.file, host, port, generatedKey: loaded.generatedKey };
    this.#alive = metrics.gauge('hermes_workers', 'Worker processes that serve (with server.workers).');
    this.#reloader = createReloader({
      current: loaded,
      load: reader.read,
      apply: (next) => this.#apply(next.config),
      onReload: tellReload(log, metrics),
    });
  }

  /** Resolves when all workers listen; rejects with what keeps the first of them from it. */
  async start(): Promise<Address> {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({ exec: process.argv[1] ?? '', args: ['worker'] });
    if (this.#settings.port === 0) this.#settings = { ...this.#settings, port: await freePort(this.#settings.host) };
    const crew = Array.from({ length: this.#config.server.workers }, (_, at) => this.#hire(at + 1));
    try {
      const [first] = await Promise.all(crew.map(({ ready }) => ready));
      if (first === undefined) throw new Error('no worker was started');
      for (const member of crew) this.#keep(member);
      this.#reloader.watch();
      return first;
    } catch (thrown) {
      this.#stopping = true;
      for (const member of crew) member.kill();
      await Promise.all(crew.map(({ ended }) => ended));
      throw thrown;
    }
  }

  reload(cause: ReloadResult['cause']): Promise<ReloadResult> {
    return this.#reloader.reload(cause);
  }

  /** Every worker by a new process, one after the other; each leaves when its successor listens. */
  replaceAll(): Promise<void> {
    this.#replacing = this.#replacing.then(async () => {
      this.#log.info({ workers: this.#config.server.workers }, 'replacing the workers');
      for (const member of this.#ready()) if (!(await this.#replace(member))) return;
      if (!this.#stopping) this.#log.info({}, 'the workers are replaced');
    });
    return this.#replacing;
  }

  /** All workers finish what they have. Rejects when one of them did not end well. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#reloader.close();
    // Connections that came before the end are handed to whoever still listens: one does so a little longer than the others.
    const ended = await Promise.all([...this.#members].map((member, at) => this.#dismiss(member, { idleMs: IDLE_MS, lingerMs: at === 0 ? LINGER_MS : 0 })));
    const bad = ended.filter(({ code }) => code !== 0);
    if (bad.length > 0) throw new Error(`${bad.length} of ${ended.length} workers did not end well: ${JSON.stringify(bad[0])}`);
  }

  /** Ends everything at once. */
  kill(): void {
    for (const member of this.#members) member.kill();
  }

  #hire(number: number): Member {
    const member = new Member(number, this.#age, this.#settings, (asking) => this.#answers(asking));
    this.#members.add(member);
    return member;
  }

  #answers(asking: Member): PrimaryAnswers {
    return {
      others: async ({ name, ask }) => {
        const others = this.#ready().filter((member) => member !== asking);
        const answers = await Promise.all(others.map((member) => member.line.ask(name, ask as never, ANSWER_MS).catch(() => undefined)));
        return answers.filter((answer) => answer !== undefined && answer !== null);
      },
      metrics: (format) => this.#text(format),
      reload: () => this.reload('admin'),
      leaving: (text) => {
        this.#totals.note(asking, text);
        return undefined;
      },
    };
  }

  /** From now on another takes its place when it ends. */
  #keep(member: Member): void {
    const since = this.#now();
    this.#count();
    // It read the configuration before the newest one was given to the others.
    if (member.age !== this.#age) void this.#give(member);
    void member.ended.then((ended) => this.#lost(member, ended, this.#now() - since));
  }

  #lost(member: Member, { code, signal }: Ended, livedMs: number): void {
    this.#members.delete(member);
    this.#totals.leave(member);
    this.#count();
    if (this.#stopping || member.state === 'leaving') return;
    const retryMs = this.#backOff(member.number).next(livedMs);
    this.#log.error({ worker: member.number, worker_pid: member.pid, code, signal, retry_ms: retryMs }, 'a worker ended, another takes its place');
    setTimeout(() => void this.#rehire(member.number), retryMs);
  }

  async #rehire(number: number): Promise<void> {
    if (this.#stopping || number > this.#config.server.workers) return;
    const member = this.#hire(number);
    const since = this.#now();
    try {
      await member.ready;
      this.#keep(member);
    } catch (err) {
      this.#log.error({ worker: number, err }, 'a worker could not start');
      // One that cannot start may still hang on.
      member.kill();
      this.#lost(member, await member.ended, this.#now() - since);
    }
  }

  /** False: its successor could not start, and it stays. */
  async #replace(member: Member): Promise<boolean> {
    if (this.#stopping || member.state !== 'ready') return !this.#stopping;
    const successor = this.#hire(member.number);
    try {
      await successor.ready;
    } catch (err) {
      this.#members.delete(successor);
      successor.kill();
      this.#log.error({ worker: member.number, err }, 'the successor of a worker could not start, the old one stays');
      return false;
    }
    this.#keep(successor);
    await this.#dismiss(member, REPLACED);
    return true;
  }

  async #dismiss(member: Member, options: StopOptions): Promise<Ended> {
    const { drain_delay_ms, drain_timeout_ms } = this.#config.server;
    return member.dismiss(options, drain_delay_ms + drain_timeout_ms + STOP_MARGIN_MS);
  }

  /** The first worker tries it; what it refuses, nobody takes. Then the others, one after the other. */
  async #apply(config: Config): Promise<void> {
    const [first, ...others] = this.#ready();
    const refused = first && (await this.#give(first));
    if (refused !== undefined) throw new Error(refused);
    this.#age++;
    this.#config = config;
    for (const member of others) {
      const reason = await this.#give(member);
      if (reason === undefined) continue;
      this.#log.error({ worker: member.number, reason }, 'a worker did not take the configuration that others took: it is replaced');
      await this.#replace(member);
    }
    await this.#resize(config.server.workers);
  }

  /** Undefined: it took the configuration, or is gone. Else why it did not. */
  async #give(member: Member): Promise<string | undefined> {
    try {
      const { outcome, mistakes } = await member.line.ask('reload', undefined, RELOAD_MS);
      return outcome === 'ok' ? undefined : mistakes.join('; ');
    } catch (thrown) {
      return member.state === 'ready' && this.#members.has(member) ? String(thrown) : undefined;
    }
  }

  async #resize(wanted: number): Promise<void> {
    const numbers = new Set(this.#ready().map(({ number }) => number));
    for (let number = 1; number <= wanted; number++) if (!numbers.has(number) && !this.#isStarting(number)) await this.#rehire(number);
    await Promise.all(
      this.#ready()
        .filter(({ number }) => number > wanted)
        .map((member) => this.#dismiss(member, REPLACED)),
    );
  }

  async #text(format: MetricsFormat): Promise<string> {
    const gathered = this.#ready().map(async (member) => {
      const text = await member.line.ask('metrics', undefined, ANSWER_MS).catch(() => undefined);
      if (text !== undefined && this.#members.has(member)) this.#totals.note(member, text);
    });
    await Promise.all(gathered);
    return this.#totals.text(await this.#metrics.text('openmetrics'), format);
  }

  #ready(): Member[] {
    return [...this.#members].filter(({ state }) => state === 'ready').sort((a, b) => a.number - b.number);
  }
  #isStarting(number: number): boolean {
    return [...this.#members].some((member) => member.number === number && member.state === 'starting');
  }
  #count(): void {
    this.#alive.set({}, this.#ready().length);
  }
  #backOff(number: number): BackOff {
    const known = this.#backOffs.get(number) ?? new BackOff();
    this.#backOffs.set(number, known);
    return known;
  }
}

/** All workers must be told the same one: asking each for any would, after a crash of all, move the gateway. */
async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
