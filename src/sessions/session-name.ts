import { HermesError } from '../contracts/errors.ts';

/** A session's name in the stores. */
export interface SessionName {
  project: string;
  session: string;
  /** In the hot store; begins with the project, in which no colon is left: no id can forge another project's key. */
  key: string;
}

const MAX_LENGTH = 256;
const CONTROL = /\p{Cc}/u;
/** Half a surrogate pair: stores would make another character of it. */
const LONE_SURROGATE = /\p{Cs}/u;

/** Throws `invalid_value` for an id that cannot be a name. */
export function toSessionName(project: string, session: string): SessionName {
  const fault =
    session === ''
      ? 'is empty'
      : [...session].length > MAX_LENGTH
        ? `is longer than ${MAX_LENGTH} characters`
        : CONTROL.test(session)
          ? 'has control characters in it'
          : LONE_SURROGATE.test(session)
            ? 'is not valid Unicode'
            : undefined;
  if (fault)
    throw new HermesError('invalid_value', `session_id ${fault}; name the session by 1 to ${MAX_LENGTH} printable characters.`, { param: 'session_id' });
  return { project, session, key: sessionKey(project, session) };
}

export function sessionKey(project: string, session: string): string {
  return `${encodeURIComponent(project)}:${session}`;
}
