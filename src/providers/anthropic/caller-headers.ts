import { toDuration } from '../../wire/duration.ts';

const LIMIT = /^anthropic-ratelimit-(requests|tokens|input-tokens|output-tokens)-(limit|remaining|reset)$/;

/** Rate limits under OpenAI's names, resets as durations; beside them as they came, for clients that speak Anthropic. */
export function toCallerHeaders(headers: Readonly<Record<string, string>>, now: number): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const [, what, which] = LIMIT.exec(name) ?? [];
    if (what === undefined) continue;
    shown[name] = value;
    const said = which === 'reset' ? untilThen(value, now) : value;
    if (said !== undefined) shown[`x-ratelimit-${which}-${what}`] = said;
  }
  return shown;
}

function untilThen(time: string, now: number): string | undefined {
  const left = Date.parse(time) - now;
  return Number.isNaN(left) ? undefined : toDuration(Math.max(0, Math.ceil(left)));
}
