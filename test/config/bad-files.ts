import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problems.ts';

export const FOLDER = fileURLToPath(new URL('../fixtures/config/bad/', import.meta.url));
export const SECRETS = ['sk-the-key-of-the-upstream', 'this-is-a-secret-value', 'secret@', 'root:secret', 'secret-host'];
const ENV = { UP_KEY: 'sk-the-key-of-the-upstream', EMPTY: '', BLANK: '   ', DATABASE_URL: '' };

export function badFiles(): string[] {
  return readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
}
/** What loading says of a file, with its folder left out; undefined when it is taken. */
export function messagesOf(name: string): string | undefined {
  try {
    loadConfig({ file: `${FOLDER}${name}`, env: ENV });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return `${error.message.replaceAll(FOLDER, '')}\n`;
  }
}
