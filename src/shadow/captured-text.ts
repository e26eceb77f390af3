import type { Config } from '../contracts/config.ts';
import type { GuardsRoom } from '../contracts/rooms.ts';
import type { ChatMessage } from '../wire/chat.ts';
import { newestUserText } from '../wire/newest-user-text.ts';

const MOST = 500;
/** A text is looked at beyond what is shown: what is cut in two is not found. */
const LOOKED_AT = 2000;

/** What a comparison may tell of the question: nothing, unless `trace.capture_content` keeps contents, and nothing that `trace.redact` names. */
export function capturedText(config: Config, messages: readonly ChatMessage[], redact: GuardsRoom['redact']): { text?: string } {
  if (config.trace.capture_content !== true) return {};
  return { text: String(redact(config, newestUserText(messages).slice(0, LOOKED_AT))).slice(0, MOST) };
}
