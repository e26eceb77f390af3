import type { PoolClient } from 'pg';
import { migrations } from '../sql/schema.ts';
import { SchemaError } from './connections.ts';

/** Any number that only hermes takes: instances that start at once migrate one after the other. */
const LOCK = 7_402_114_055;

export async function migrate(client: PoolClient): Promise<void> {
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
  await client.query('CREATE TABLE IF NOT EXISTS hermes_schema (version INTEGER NOT NULL PRIMARY KEY)');
  const { rows } = await client.query<{ version: number | null }>('SELECT MAX(version) AS version FROM hermes_schema');
  const version = rows[0]?.version ?? 0;
  const steps = migrations('postgres');
  const newest = steps.at(-1)?.version ?? 0;
  if (version > newest) throw new SchemaError(`the database was written by a newer hermes (schema ${version}, this one knows ${newest}); start that version`);
  for (const step of steps.filter((candidate) => candidate.version > version)) {
    for (const statement of step.statements) await client.query(statement);
    await client.query('INSERT INTO hermes_schema (version) VALUES ($1)', [step.version]);
  }
  await client.query('COMMIT');
}
