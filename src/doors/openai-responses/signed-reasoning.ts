import { isRecord } from '../../wire/json.ts';

/** Signed thinking travels in a reasoning item's `encrypted_content`, which clients hand back as it is. */
const MARK = 'hermes.';

export function toEncryptedContent(thinkingBlocks: unknown): string | undefined {
  if (!Array.isArray(thinkingBlocks) || thinkingBlocks.length === 0) return undefined;
  return MARK + Buffer.from(JSON.stringify(thinkingBlocks)).toString('base64url');
}

export function fromEncryptedContent(text: unknown): Record<string, unknown>[] {
  if (typeof text !== 'string' || !text.startsWith(MARK)) return [];
  try {
    const blocks: unknown = JSON.parse(Buffer.from(text.slice(MARK.length), 'base64url').toString('utf8'));
    return Array.isArray(blocks) ? blocks.filter(isRecord) : [];
  } catch {
    return [];
  }
}
