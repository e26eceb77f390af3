import { isRecord } from '../../wire/json.ts';
import { sameJson } from '../../wire/same-json.ts';

/** Does a member of the request (or a message of it) say what the client's own says? The API reads a string as one text block. */
export function saysTheSame(own: unknown, source: unknown, key: string): boolean {
  if (key === 'system') return sameJson(plainSystem(own), plainSystem(source));
  if (key !== 'messages') return sameJson(own, source);
  if (Array.isArray(own)) return Array.isArray(source) && own.length === source.length && own.every((turn, index) => sameTurn(turn, source[index]));
  return sameTurn(own, source);
}

function sameTurn(own: unknown, source: unknown): boolean {
  if (!isRecord(own) || !isRecord(source) || own.role !== source.role || Object.keys(source).length !== 2) return false;
  const [blocks, theirs] = [toBlocks(own.content), toBlocks(source.content)];
  return Array.isArray(blocks) && Array.isArray(theirs) && blocks.length === theirs.length && blocks.every((block, index) => sameBlock(block, theirs[index]));
}

function sameBlock(own: unknown, source: unknown): boolean {
  if (!isRecord(own) || !isRecord(source) || own.type !== 'tool_result') return sameJson(own, source);
  return sameJson({ ...own, content: toBlocks(own.content) }, { ...source, content: toBlocks(source.content) });
}

function toBlocks(content: unknown): unknown {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** The same string for blocks that are text alone and nothing more. */
function plainSystem(system: unknown): unknown {
  const plain = Array.isArray(system) && system.every((block) => isRecord(block) && block.type === 'text' && Object.keys(block).length === 2);
  return plain ? system.map((block) => block.text).join('\n\n') : system;
}
