import { HermesError } from '../../contracts/errors.ts';
import type { ContentPart } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { type Block, textBlock } from './blocks.ts';

const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** Content parts as blocks; what is blank gives none. `path` names the place in a refusal: what cannot be carried changes the meaning. */
export function toBlocks(content: unknown, path: string): Block[] {
  if (typeof content === 'string') return present(textBlock(content));
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: ContentPart, index) => toBlock(part, `${path}[${index}]`));
}

function present(block: Block | undefined): Block[] {
  return block ? [block] : [];
}

function toBlock(part: ContentPart, path: string): Block[] {
  switch (part.type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return withExtras(textBlock(part.text), part);
    case 'refusal':
      return withExtras(textBlock(part.refusal), part);
    case 'image_url':
    case 'input_image':
      return withExtras(imageBlock(part, path), part);
    case 'file':
      return withExtras(documentBlock(isRecord(part.file) ? part.file : {}, path), part);
    case 'anthropic':
      return isRecord(part.block) && typeof part.block.type === 'string' ? [{ ...part.block, type: part.block.type }] : [];
    default:
      throw unsupported(path, `A content part of the type ${JSON.stringify(part.type)} cannot be sent to this model; leave it out or choose another model.`);
  }
}

/** Native fields: those that Anthropic's own clients brought (`anthropic`), or a `cache_control` that the caller put there itself. */
function withExtras(block: Block | undefined, part: ContentPart): Block[] {
  if (!block) return [];
  if (isRecord(part.cache_control)) block.cache_control = part.cache_control;
  if (isRecord(part.anthropic)) Object.assign(block, part.anthropic);
  return [block];
}

function imageBlock(part: ContentPart, path: string): Block {
  const image: unknown = part.image_url;
  const url = typeof image === 'string' ? image : isRecord(image) && typeof image.url === 'string' ? image.url : '';
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } };
  const data = parseDataUrl(url);
  if (!data) throw unsupported(path, 'An image must be an http(s) address or a base64 data URL.');
  return imageOf(data.mediaType, data.base64, path);
}

function imageOf(type: string, base64: string, path: string): Block {
  const mediaType = type === 'image/jpg' ? 'image/jpeg' : type;
  if (!IMAGE_TYPES.has(mediaType)) throw unsupported(path, 'This model reads JPEG, PNG, GIF and WebP images; convert the image.');
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: checkBase64(base64, path) } };
}

function documentBlock(file: Record<string, unknown>, path: string): Block {
  const title = typeof file.filename === 'string' && file.filename !== '' ? { title: file.filename } : {};
  if (typeof file.file_data === 'string') {
    const data = parseDataUrl(file.file_data) ?? { mediaType: 'application/pdf', base64: file.file_data };
    if (data.mediaType.startsWith('image/')) return imageOf(data.mediaType, data.base64, path);
    if (data.mediaType === 'application/pdf')
      return { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: checkBase64(data.base64, path) }, ...title };
    if (data.mediaType.startsWith('text/') || data.mediaType === 'application/json')
      return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: Buffer.from(data.base64, 'base64').toString('utf8') }, ...title };
    throw unsupported(path, 'This model reads PDF, plain text and image files; convert the file.');
  }
  if (typeof file.file_url === 'string' && /^https?:\/\//i.test(file.file_url))
    return { type: 'document', source: { type: 'url', url: file.file_url }, ...title };
  // Anthropic's own ids begin with `file_`, OpenAI's with `file-`: those of another vendor's store mean nothing here.
  if (typeof file.file_id === 'string' && file.file_id.startsWith('file_'))
    return { type: 'document', source: { type: 'file', file_id: file.file_id }, ...title };
  throw unsupported(path, "A file must bring its data (`file_data`): an id of another vendor's store cannot be read by this model.");
}

/** `data:image/png;charset=utf-8;base64,…`: parameters may stand before `base64`; without it the data is percent-encoded. */
function parseDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  const comma = url.indexOf(',');
  if (!/^data:/i.test(url) || comma < 0) return undefined;
  const [type = '', ...parameters] = url.slice(5, comma).split(';');
  const payload = url.slice(comma + 1);
  const encoded = parameters.some((parameter) => parameter.trim().toLowerCase() === 'base64');
  return { mediaType: type.trim().toLowerCase() || 'text/plain', base64: encoded ? payload : Buffer.from(percentDecoded(payload)).toString('base64') };
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The standard alphabet with its padding, which is all that the API takes; the URL-safe one, line breaks and a missing padding are mended. */
function checkBase64(text: string, path: string): string {
  if (text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)) return text;
  const bare = text
    .replace(/%2B/gi, '+')
    .replace(/%2F/gi, '/')
    .replace(/%3D/gi, '=')
    .replace(/\s+/g, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/=+$/, '');
  if (bare === '' || bare.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(bare)) throw unsupported(path, 'The data URL does not hold valid base64.');
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, '=');
}

function unsupported(param: string, message: string): HermesError {
  return new HermesError('invalid_value', message, { param });
}
