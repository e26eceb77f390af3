import type { ChatMessage, ContentPart } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import { toPlainParts } from '../wire/native-blocks.ts';

/** What of a message is counted. */
export interface MessageSize {
  texts: string[];
  /** Tokens beside the texts: the frame, images and other media. */
  fixed: number;
}

/** Source: OpenAI's cookbook, "How to count tokens with tiktoken": a frame of three and the role's name; three more lead the answer. */
const FRAME = 4;
const NAME_FRAME = 1;
const CALL_FRAME = 3;
export const ANSWER_FRAME = 3;
/** What OpenAI charges for an image: `low`, and a square of 1024 pixels in `high` detail. Media are estimated, never tokenised. */
const IMAGE_LOW = 85;
const IMAGE_HIGH = 765;
const OTHER_MEDIA = 1000;

export function sizeOfMessage(message: ChatMessage): MessageSize {
  const size: MessageSize = { texts: [], fixed: FRAME };
  const { content, name, tool_calls } = message;
  const add = (text: unknown): void => {
    if (typeof text === 'string' && text !== '') size.texts.push(text);
  };
  if (Array.isArray(content)) for (const part of content) addPart(size, part);
  else add(content);
  if (name) {
    size.fixed += NAME_FRAME;
    add(name);
  }
  add(message.reasoning_content);
  add(message.refusal);
  for (const call of tool_calls ?? []) {
    size.fixed += CALL_FRAME;
    add(call.function?.name);
    add(call.function?.arguments);
  }
  return size;
}

function addPart(size: MessageSize, part: ContentPart): void {
  if (typeof part.text === 'string') size.texts.push(part.text);
  else if (typeof part.refusal === 'string') size.texts.push(part.refusal);
  else if (part.type === 'image_url') size.fixed += part.image_url?.detail === 'low' ? IMAGE_LOW : IMAGE_HIGH;
  else {
    const plain = part.type === 'anthropic' && isRecord(part.block) ? toPlainParts(part.block) : undefined;
    if (plain) for (const one of plain) addPart(size, one);
    else size.fixed += OTHER_MEDIA;
  }
}

/** No token is shorter than a byte: never less than the true count. */
export function upperBound({ texts, fixed }: MessageSize): number {
  let bytes = fixed;
  for (const text of texts) bytes += Buffer.byteLength(text);
  return bytes;
}
