import { randomBytes } from 'node:crypto';
import { DEFAULT_PASSTHROUGH } from '../access/passthrough-paths.ts';
import type { KeyConfig, SignatureConfig } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';
import type { KnownProviders } from './inventory.ts';
import type { Path } from './problems.ts';
import type { ConfigFile } from './schema.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value; blank is unset, and the line break that files and shells leave at the end is no part of a key. */
export function variable(env: Environment, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined;
  return value === '' ? undefined : value;
}

/** The values of every variable that the file names (`*_env`), and of those that hermes knows by itself. */
export function collectSecrets(file: unknown, env: Environment, known: KnownProviders): ReadonlyMap<string, string> {
  const secrets = new Map<string, string>();
  const add = (name: string | undefined) => {
    const value = name === undefined ? undefined : variable(env, name);
    if (name !== undefined && value !== undefined) secrets.set(name, value);
  };
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(walk);
    else if (isRecord(value)) {
      for (const [key, inner] of Object.entries(value)) {
        if (key.endsWith('_env') && typeof inner === 'string') add(inner);
        else walk(inner);
      }
    }
  };
  walk(file);
  for (const defaults of Object.values(known)) add(defaults.apiKeyEnv);
  add('API_KEY');
  add('ADMIN_API_KEY');
  return secrets;
}

/** Where a missing secret would leave a door open, or shut for good, the start is refused. */
const NEEDED = [
  ['auth', 'keys', 'key_env', 'the key would let nobody in'],
  ['auth', 'signatures', 'secret_env', 'no signature could be checked'],
  ['tools', undefined, 'secret_env', 'calls would go out unsigned'],
  ['tools', undefined, 'mcp.secret_env', 'calls would go out without their token'],
  ['cost', 'budgets', 'notify.secret_env', 'the webhook could not tell who tells it'],
  ['guards', undefined, 'secret_env', 'the webhook could not tell who asks it'],
  ['metrics', undefined, 'token_env', '/metrics would be open'],
  ['trace', undefined, 'hash_key_env', 'hashes would be made without it'],
] as const;
export function checkSecrets(file: Record<string, unknown>, env: Environment, report: (path: Path, message: string) => void): void {
  for (const [block, list, field, why] of NEEDED) {
    const held = list === undefined ? file[block] : isRecord(file[block]) ? file[block][list] : undefined;
    const base: Path = list === undefined ? [block] : [block, list];
    const each = (entry: unknown, path: Path) => {
      const name = field.split('.').reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), entry);
      if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || variable(env, name) !== undefined) return;
      report([...path, ...field.split('.')], `the environment variable ${name} is ${env[name] === undefined ? 'not set' : 'blank'}: ${why}`);
    };
    if (Array.isArray(held)) for (const [index, entry] of held.entries()) each(entry, [...base, index]);
    else each(held, base);
  }
}

/** Short, or a word with digits after it, is what scanners try first. */
export function isWeak(key: string): boolean {
  return key.length < 20 || /^[A-Za-z]+[-_.]?\d+$/.test(key);
}

/** What a key does not say follows from what it says. */
export function withDefaults(key: ConfigFile['auth']['keys'][number]): KeyConfig {
  const service = key.service ?? key.id;
  const project = key.project ?? service;
  return { ...key, service, services: key.services ?? [service], project, projects: key.projects ?? [project] };
}

const EVERYTHING = { services: ['*'], projects: ['*'], models: ['*'], tools: ['*'], user_levels: ['*'], priorities: ['*'] };
/** All keys: the file's, `API_KEY`, `ADMIN_API_KEY`; with no way in at all, one for this run. */
export function toKeys(
  file: ConfigFile,
  secrets: ReadonlyMap<string, string>,
  previous: string | undefined,
): { keys: KeyConfig[]; generatedKey: string | undefined } {
  const keys: KeyConfig[] = file.auth.keys.map(withDefaults);
  const implied = (name: string, admin: boolean) => {
    if (!secrets.has(name) || keys.some((key) => key.key_env === name)) return;
    keys.push({ id: name, key_env: name, service: 'default', project: 'default', ...EVERYTHING, admin, passthrough: [...DEFAULT_PASSTHROUGH] });
  };
  implied('API_KEY', !secrets.has('ADMIN_API_KEY'));
  implied('ADMIN_API_KEY', true);
  if (keys.length > 0 || file.auth.signatures.length > 0) return { keys, generatedKey: undefined };
  const generatedKey = previous ?? `sk-hermes-${randomBytes(24).toString('base64url')}`;
  return {
    keys: [
      { id: 'generated', key_env: GENERATED_KEY, service: 'default', project: 'default', ...EVERYTHING, admin: true, passthrough: [...DEFAULT_PASSTHROUGH] },
    ],
    generatedKey,
  };
}
/** Name under which the generated key stands among the secrets. */
export const GENERATED_KEY = 'HERMES_GENERATED_KEY';

export function toSignatures(file: ConfigFile): SignatureConfig[] {
  return file.auth.signatures.map((entry) => ({ ...entry, project: entry.project ?? entry.service }));
}
