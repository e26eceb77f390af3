import { statSync } from 'node:fs';

/** Of what reading a file threw, for people. */
export function whyUnreadable(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOENT') return 'there is no such file';
  return code === 'EISDIR' ? 'is a folder, not a file' : `cannot be read (${code})`;
}

/** Nothing when it is a folder. */
export function whyNoFolder(path: string): string | undefined {
  try {
    return statSync(path).isDirectory() ? undefined : 'is a file, not a folder';
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' ? 'there is no such folder' : `cannot be read (${code})`;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
