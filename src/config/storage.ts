import { resolve } from 'node:path';
import type { Config } from '../contracts/config.ts';
import { type Environment, variable } from './environment.ts';
import type { Path } from './problems.ts';
import type { ConfigFile } from './schema.ts';

type Storage = Config['session']['storage'];
/** Problems of an address are told at its place: the variable, or the file's key. Never with the address: it holds a password. */
export interface StorageFindings {
  report(path: Path, message: string): void;
  reportVariable(name: string, message: string): void;
}
const DEFAULT_DATABASE = 'sqlite:///./data/hermes.db';

/** Environment beats file beats default; the back-ends follow the addresses. */
export function resolveStorage(storage: ConfigFile['session']['storage'], env: Environment, cwd: string, findings: StorageFindings): Storage {
  const given = (name: string, key: 'redis_url' | 'database_url') => {
    const value = variable(env, name);
    return {
      url: value ?? storage[key],
      refuse: (message: string) => (value === undefined ? findings.report(['session', 'storage', key], message) : findings.reportVariable(name, message)),
    };
  };
  const redis = given('REDIS_URL', 'redis_url');
  if (redis.url !== undefined && !isRedis(redis.url))
    redis.refuse('must be redis://host:6379, rediss://…, redis+sentinel://host:26379/name, or several nodes with commas between them');
  const hot = storage.hot_backend ?? (redis.url === undefined ? 'memory' : 'redis');

  const database = given('DATABASE_URL', 'database_url');
  const url = toDatabase(database.url ?? DEFAULT_DATABASE, cwd);
  if (url === undefined) database.refuse('must be sqlite:///path, sqlite::memory: or postgres://user@host/name');
  const engine = url?.startsWith('postgres') ? 'postgres' : 'sqlite';
  if (url !== undefined && storage.cold_backend !== undefined && storage.cold_backend !== engine) {
    const mend =
      database.url === undefined
        ? 'set DATABASE_URL to postgres://user@host/name, or leave cold_backend out'
        : `DATABASE_URL is that of ${engine === 'sqlite' ? 'an SQLite file' : 'PostgreSQL'}: leave cold_backend out, or give the other address`;
    findings.report(['session', 'storage', 'cold_backend'], `\`${storage.cold_backend}\` is against the database: ${mend}`);
  }
  return {
    hot_backend: hot,
    hot_ttl_seconds: storage.hot_ttl_seconds,
    cold_backend: engine,
    database_url: url ?? DEFAULT_DATABASE,
    redis_url: redis.url ?? (hot === 'redis' ? 'redis://127.0.0.1:6379' : undefined),
  };
}

function isRedis(url: string): boolean {
  return url.split(',').every((node, index) => {
    const text = node.trim();
    const whole = index > 0 && !text.includes('://') ? `redis://${text}` : text;
    return /^rediss?(\+sentinel)?:\/\//i.test(whole) && URL.canParse(whole) && new URL(whole).hostname !== '';
  });
}

/** `sqlite:///` and what follows is a path, as in SQLAlchemy: relative to the working directory, or absolute with a fourth slash. */
function toDatabase(url: string, cwd: string): string | undefined {
  if (/^sqlite:(\/\/\/?)?:memory:$/.test(url)) return 'sqlite::memory:';
  const path = /^sqlite:\/\/\/(.+)$/.exec(url)?.[1];
  if (path !== undefined) return `sqlite:///${resolve(cwd, path)}`;
  const postgres = /^postgres(?:ql)?(?:\+\w+)?(:\/\/.+)$/.exec(url)?.[1];
  return postgres !== undefined && URL.canParse(`postgres${postgres}`) ? `postgres${postgres}` : undefined;
}
