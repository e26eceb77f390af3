import type { ContentPart } from './chat.ts';
import { isRecord } from './json.ts';

/** One of Anthropic's own content blocks, as it stands in a part of the type `anthropic`. */
export type NativeBlock = Readonly<Record<string, unknown>>;

/** Its texts and images in everybody's words, a title and a source before them; undefined for what only Anthropic can read (an address, a file of its store). */
export function toPlainParts(block: NativeBlock): ContentPart[] | undefined {
  switch (block.type) {
    case 'search_result':
      return joined([block.title, block.source], block.content);
    case 'document':
      return isRecord(block.source) ? toDocument(block, block.source) : undefined;
    case 'tool_reference':
      return joined([], block.tool_name);
    case 'compaction':
      return joined([], block.content);
    default:
      return undefined;
  }
}

export function toImagePart(source: unknown): ContentPart | undefined {
  if (!isRecord(source)) return undefined;
  if (source.type === 'url' && typeof source.url === 'string') return { type: 'image_url', image_url: { url: source.url } };
  if (source.type === 'base64') return { type: 'image_url', image_url: { url: `data:${source.media_type};base64,${source.data}` } };
  return undefined;
}

function toDocument({ title, context }: NativeBlock, source: Record<string, unknown>): ContentPart[] | undefined {
  if (source.type === 'text') return joined([title, context], source.data);
  return source.type === 'content' ? joined([title, context], source.content) : undefined;
}

/** Texts that follow each other are one part. Undefined when there is something in it that cannot be told. */
function joined(heading: readonly unknown[], content: unknown): ContentPart[] | undefined {
  const parts: ContentPart[] = [];
  let lines = heading.filter(isText);
  const flush = (): void => {
    if (lines.length > 0) parts.push({ type: 'text', text: lines.join('\n') });
    lines = [];
  };
  for (const piece of Array.isArray(content) ? content : [{ type: 'text', text: content }]) {
    if (!isRecord(piece)) return undefined;
    if (piece.type === 'text') {
      if (isText(piece.text)) lines.push(piece.text);
      continue;
    }
    const image = piece.type === 'image' ? toImagePart(piece.source) : undefined;
    if (!image) return undefined;
    flush();
    parts.push(image);
  }
  flush();
  return parts;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Where a block stood in what the client sent: a history that is put before it, and results that become messages, move it. */
const places = new WeakMap<NativeBlock, string>();

export function rememberPlace(block: NativeBlock, place: string): void {
  places.set(block, place);
}
export function placeOf(block: NativeBlock): string | undefined {
  return places.get(block);
}
