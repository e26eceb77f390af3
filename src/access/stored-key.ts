import type { KeyConfig } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';

/** A key as it is stored: its hash, never the key. */
export interface StoredKey extends KeyConfig {
  sha256: string;
  created_at: string;
  created_by: string;
  revoked_at?: string;
}

/** Undefined for what is no such key: what the store gives decides who is let in, so nothing of it is taken on trust. */
export function toStored(text: string | undefined): StoredKey | undefined {
  const value = text === undefined ? undefined : read(text);
  if (!isRecord(value) || typeof value.admin !== 'boolean') return undefined;
  const [id, sha256, service, project] = [value.id, value.sha256, value.service, value.project];
  const [created_at, created_by, expires, revoked_at] = [value.created_at, value.created_by, value.expires, value.revoked_at];
  if (!isText(id) || !isText(sha256) || !isText(service) || !isText(project) || !isText(created_at) || !isText(created_by)) return undefined;
  if (!isTextOrNone(expires) || !isTextOrNone(revoked_at)) return undefined;
  const { services, projects, models, tools, user_levels, priorities, passthrough } = value;
  if (!isList(services) || !isList(projects) || !isList(models) || !isList(tools)) return undefined;
  if (!isList(user_levels) || !isList(priorities) || !isList(passthrough)) return undefined;
  return {
    ...{ id, sha256, service, services, project, projects, admin: value.admin, models, tools, user_levels, priorities, passthrough, created_at, created_by },
    ...(expires === undefined ? {} : { expires }),
    ...(revoked_at === undefined ? {} : { revoked_at }),
  };
}

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
function isText(value: unknown): value is string {
  return typeof value === 'string';
}
function isTextOrNone(value: unknown): value is string | undefined {
  return value === undefined || isText(value);
}
function isList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}
