import { existsSync, readFileSync } from 'node:fs';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Nothing but our own files, nowhere to send anything but here. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** Beside the sources in development, beside the compiled code in a package. */
const FOLDERS = ['../../console/public', '../../../dist/console'].map(here);
/** The charts' library: in development where its package is; the build puts it beside the console. */
const LIBRARY: Readonly<Record<string, string>> = {
  '/uplot.js': here('../../node_modules/uplot/dist/uPlot.iife.min.js'),
  '/uplot.css': here('../../node_modules/uplot/dist/uPlot.min.css'),
};

export interface ConsoleFile {
  contentType: string;
  bytes: Uint8Array;
  headers: Record<string, string>;
}

/** A file of the console, `/console` being its page; undefined when there is none. Its data comes from the admin routes. */
export function serveConsole(path: string): ConsoleFile | undefined {
  const name = normalize(path.slice('/console'.length) || '/index.html').replace(/^\/$/, '/index.html');
  const contentType = TYPES[extname(name)];
  if (contentType === undefined || name.includes('..')) return undefined;
  for (const file of [...FOLDERS.map((folder) => join(folder, name)), LIBRARY[name]]) {
    if (file !== undefined && existsSync(file)) return { contentType, bytes: readFileSync(file), headers: HEADERS };
  }
  return undefined;
}
