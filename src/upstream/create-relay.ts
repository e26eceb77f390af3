import { ChatRelay } from './chat-relay.ts';
import type { Relay, RelayOptions } from './relay.ts';
import { TranslatingRelay } from './translating-relay.ts';

export function createRelay(options: RelayOptions): Relay {
  return options.provider.form === 'openai-chat' ? new ChatRelay(options) : new TranslatingRelay(options);
}
