import { isRecord } from '../wire/json.ts';
import { MAX_QUOTED, MAX_RESULT_BYTES, type Try, toBrokenTry, tooLarge } from './tries.ts';

/** JSON-RPC and MCP codes, as the SDK numbers them. */
const CONNECTION_CLOSED = -32000;
const REQUEST_TIMEOUT = -32001;
/** The server looked at the request and refused it before running anything. */
const REFUSED = new Set([-32600, -32601, -32602]);

/** What a server answered to `tools/call`. */
export function toMcpTry(result: { content?: unknown; structuredContent?: unknown; isError?: unknown }): Try {
  const parts = Array.isArray(result.content) ? result.content.map(toText) : [];
  const text = parts.length === 0 && result.structuredContent !== undefined ? JSON.stringify(result.structuredContent) : parts.join('\n');
  if (Buffer.byteLength(text) > MAX_RESULT_BYTES) return tooLarge();
  if (result.isError === true) return { kind: 'failed', message: text.slice(0, MAX_QUOTED) || 'The tool failed.', refused: false, passing: false };
  return { kind: 'ok', text };
}

/** A part of a result as text; what a model cannot read as such is named. */
function toText(part: unknown): string {
  if (!isRecord(part)) return '';
  if (typeof part.text === 'string') return part.text;
  const { resource } = part;
  if (isRecord(resource)) return typeof resource.text === 'string' ? resource.text : `[${String(resource.uri)}, ${String(resource.mimeType ?? 'binary')}]`;
  if (part.type === 'resource_link') return `[${String(part.name ?? '')} ${String(part.uri)}]`;
  return `[${String(part.type)}, ${String(part.mimeType ?? 'unknown')}, not shown]`;
}

/** Which of the SDK's errors it was. `lost`: the session is gone, and the server has seen nothing of the call. */
export function toMcpFailure(thrown: unknown): Try | 'timeout' | 'lost' {
  const code = thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'number' ? thrown.code : undefined;
  if (code === REQUEST_TIMEOUT) return 'timeout';
  if (code === 404 || code === 400) return 'lost';
  if (code === undefined || code === CONNECTION_CLOSED || code === -1) return toBrokenTry(thrown instanceof Error && thrown.cause ? thrown.cause : thrown);
  const refused = code > 0 ? code < 500 && code !== 408 : REFUSED.has(code);
  const said = thrown instanceof Error ? thrown.message.slice(0, MAX_QUOTED) : '';
  return {
    kind: 'failed',
    message: code > 0 ? `The tool's server answered with status ${code}.` : said,
    refused,
    passing: code >= 500 || code === 429 || code === 408,
  };
}
